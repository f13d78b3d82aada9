"""WORKFLOW.md: read it, watch it, render its prompt."""

from sortie.config import keep_restart_only, needs_restart
from sortie.workflow.loader import Workflow, load
from sortie.workflow.prompts import Prompt, PromptContext, with_status_instructions
from sortie.workflow.renderer import render
from sortie.workflow.watcher import watch

__all__ = [
    "Prompt",
    "PromptContext",
    "Workflow",
    "keep_restart_only",
    "load",
    "needs_restart",
    "render",
    "watch",
    "with_status_instructions",
]
