"""``sortie explain``: why an issue runs, waits or does not."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from sortie.cli.arguments import (
    DEFAULT_WORKFLOW,
    EnvFile,
    OutputFormat,
    Source,
    WorkflowOption,
)
from sortie.cli.commanding import IssueArgument, issue_path
from sortie.cli.output import Format, emit_json, emit_line
from sortie.cli.times import between, local

if TYPE_CHECKING:
    from sortie.web import ExplanationView

_STANDINGS = {"handing_off": "being handed off", "cleaning": "its workspace is being removed"}


def explain(
    issue: IssueArgument,
    workflow: WorkflowOption = DEFAULT_WORKFLOW,
    env_file: EnvFile = None,
    output: OutputFormat = Format.TEXT,
) -> None:
    """Show how an issue stands with the daemon: why it runs, waits, is held or is not started.

    Each gate between the issue and a run is shown, open or closed, in the order in which they
    decide; then what must happen before it runs next, and what a person can do.
    """
    from sortie.cli.asking import look, understood
    from sortie.cli.finding import locate
    from sortie.web import ExplanationView

    place = locate(Source(workflow=workflow, env_file=env_file))
    answer = look(place, f"explain {issue}", f"/api/v1/{issue_path(issue)}/explain")
    view = understood(ExplanationView, answer.document)
    if output is Format.JSON:
        emit_json(answer.document)
        return
    for line in lines(view, datetime.now(UTC)):
        emit_line(line)


def lines(view: ExplanationView, now: datetime) -> Iterator[str]:
    """Yield what people are shown of an explanation, the headline first."""
    yield f"{view.issue_identifier} ({view.state}): {view.title}"
    standing = _STANDINGS.get(view.standing, view.standing)
    since = f" since {local(view.since)} ({between(view.since, now)})" if view.since else ""
    yield f"{standing}{since}: {view.detail}"
    if run := _run(view):
        yield run
    yield ""
    width = max((len(gate.gate) for gate in view.gates), default=0)
    for gate in view.gates:
        word = "open" if gate.reason is None else f"closed: {gate.reason}"
        yield f"gate  {gate.gate:{width}}  {word}"
    yield ""
    yield f"next  {_next(view, now)}"
    for way in view.ways_out:
        yield f"way out  {way}"


def _run(view: ExplanationView) -> str:
    parts = (("run", view.run_id), ("turn", view.turn), ("attempt", view.attempt))
    return ", ".join(f"{name} {value}" for name, value in parts if value is not None)


def _next(view: ExplanationView, now: datetime) -> str:
    at = view.next_run_at
    if at is None:
        return view.next_step
    when = f"in {between(now, at)}" if at > now else "due"
    return f"{local(at)} ({when}): {view.next_step}"
