"""WORKFLOW.md: read it, watch it, render its prompt.

``renderer`` and ``watcher`` need trio, which reading the file does not, so nothing of them is here.
"""

from sortie.config import keep_restart_only, needs_restart
from sortie.workflow.loader import Workflow, load
from sortie.workflow.prompts import Prompt, PromptContext, with_status_instructions

__all__ = [
    "Prompt",
    "PromptContext",
    "Workflow",
    "keep_restart_only",
    "load",
    "needs_restart",
    "with_status_instructions",
]
