"""``sortie render``: the prompt that an agent would get."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Annotated

from sortie.cli.arguments import OutputFormat, Source
from sortie.cli.output import Format, emit, emit_json, visible
from sortie.cli.parameters import argument, option
from sortie.model import LOCAL, Issue

if TYPE_CHECKING:
    from sortie.config.settings import Settings
    from sortie.workflow.loader import Workflow
    from sortie.workflow.prompts import PromptContext


def render(
    issue: Annotated[
        str,
        argument(
            metavar="ISSUE",
            help="The issue's identifier, such as DEMO-1.",
            completes="issue",
        ),
    ],
    source: Source,
    turn: Annotated[
        int, option(least=1, metavar="N", help="Of which turn; from 2 on it continues.")
    ] = 1,
    attempt: Annotated[
        int, option(least=0, metavar="N", help="After how many failures in a row.")
    ] = 0,
    rule: Annotated[
        str | None,
        option(metavar="NAME", help="By this rule, not by the one that decides for the issue."),
    ] = None,
    output: OutputFormat = Format.TEXT,
) -> None:
    """Show the prompt as the agent would get it for an issue as it stands now.

    The issue is read from the tracker; nothing is started and nothing is written. The prompt is
    that of the rule that was chosen for the issue, else of the first that matches, and knows
    nothing of a stage before.
    """
    from sortie.daemon.dry_run import read_issue
    from sortie.daemon.issue_rules import settings_for, settings_of_rule
    from sortie.daemon.workflow_file import load_workflow

    source.require()
    options = source.options()
    loaded = load_workflow(options)
    named = None if rule is None else settings_of_rule(loaded.settings, rule)
    found = read_issue(options, issue)
    settings = named or settings_for(loaded.settings, found)
    prompt = _prompt(loaded, settings, _context(settings, found, turn, attempt))
    if output is Format.JSON:
        emit_json(
            {
                "issue": found.identifier,
                "issue_id": found.id,
                "turn": turn,
                "attempt": attempt,
                "rule": settings.rule or None,
                "prompt": prompt,
            }
        )
        return
    shown = visible(prompt, keep="\n\t") if sys.stdout and sys.stdout.isatty() else prompt
    emit(f"{shown.removesuffix(chr(10))}\n")


def _context(settings: Settings, issue: Issue, turn: int, attempt: int) -> PromptContext:
    from sortie.workflow.prompts import PromptContext
    from sortie.workspaces import workspace_key

    hosts = settings.worker.hosts
    root = settings.remote_root if hosts else os.path.realpath(settings.workspace.root)
    return PromptContext(
        issue=issue,
        attempt=attempt,
        turn_number=turn,
        max_turns=settings.agent.max_turns,
        is_continuation=turn > 1,
        workspace_path=os.path.join(root, workspace_key(issue.identifier)),
        host=hosts[0] if hosts else LOCAL,
        stage=settings.rule,
    )


def _prompt(workflow: Workflow, settings: Settings, context: PromptContext) -> str:
    import trio

    from sortie.workflow.composing import compose
    from sortie.workflow.fences import Fence

    fence = Fence() if settings.trust.fences else None

    async def composed() -> str:
        asked = settings.agent.status_instructions
        prompt = workflow.prompt_of(settings)
        return await compose(prompt, context, fence, status_instructions=asked)

    return trio.run(composed)
