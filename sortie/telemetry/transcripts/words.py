"""What the facts of a run say in its transcript; pure."""

from __future__ import annotations

from sortie.model.numbers import took
from sortie.telemetry import facts
from sortie.telemetry.facts import Fact
from sortie.telemetry.transcripts.entries import Kind

INDENT = "    "
"""Stands before each line of what a tool said."""


def said(fact: Fact) -> tuple[Kind, str] | None:
    """Return what a fact is in a transcript, None where it says nothing there.

    What the agent itself says is told of by its text alone.
    """
    match fact:
        case facts.AgentWroteErrors(text=text):
            return Kind.STDERR, text
        case facts.ToolCallEnded():
            return Kind.TOOL, _tool(fact)
        case facts.PermissionAnswered(question=question, answer=answer):
            return Kind.PERMISSION, f"{question}: {answer}"
        case facts.HookCompleted():
            return Kind.HOOK, _hook(fact)
        case facts.TurnBegan(turn=turn, max_turns=most):
            return Kind.TURN, f"turn {turn} of {most} began"
        case facts.TurnCompleted():
            return Kind.TURN, _turn(fact)
        case facts.RunFact():
            about = _run(fact)
            return None if about is None else (Kind.RUN, about)
        case _:
            return None


def _run(fact: facts.RunFact) -> str | None:
    match fact:
        case facts.RunStarted(issue=issue, attempt=attempt, host=host, agent=agent):
            about = f"{issue.identifier} ({issue.state}): {issue.shown_title}"
            return f"run began: {about}; attempt {attempt}, {agent} on {host}"
        case facts.WorkspaceReady(path=path, created=created):
            return f"workspace {'made' if created else 'used again'}: {path}"
        case facts.SessionStarted(session_id=str(session)) | facts.SessionNamed(session_id=session):
            return f"session {session}"
        case facts.SessionRefused(error_kind=kind, error=error):
            return f"no session: {kind.value}: {error}"
        case facts.StatusFileRead(word=word, reason=reason):
            return f"the agent left the word {word!r}" + (f": {reason}" if reason else "")
        case facts.RunStopping(reason=reason):
            return f"run is told to stop: {reason.value}"
        case facts.RunFinished(status=status, seconds=seconds):
            return f"run {status.value} after {took(seconds)}{_because(fact)}"
        case facts.RunRecovered():
            return (
                "run interrupted: the daemon ended before it did; what came in its last seconds"
                " may not be here"
            )
        case _:
            return None


def _tool(fact: facts.ToolCallEnded) -> str:
    """Say on one line what was called and how that ended, and below it what the tool said."""
    name = f"{fact.tool or 'a tool'}" + (f" ({fact.kind})" if fact.kind else "")
    given = " ".join((fact.about or "").split())
    places = ", ".join(place for place in fact.locations if place not in given)
    about = "".join(f": {part}" for part in (given, places) if part)
    how = "failed" if fact.failed else "ended"
    said = (fact.error or fact.output or "").strip("\n")
    lines = "".join(f"\n{INDENT}{line}" for line in said.splitlines())
    return f"{name} {how} after {took(fact.seconds)}{about}{lines}"


def _turn(fact: facts.TurnCompleted) -> str:
    return f"turn {fact.turn} {fact.outcome.value} after {took(fact.seconds)}{_because(fact)}"


def _because(fact: facts.TurnCompleted | facts.RunFinished) -> str:
    parts = (fact.error_kind.value if fact.error_kind else None, fact.error)
    return "".join(f": {part}" for part in parts if part)


def _hook(fact: facts.HookCompleted) -> str:
    status = f": {fact.status}" if fact.status else ""
    output = f"\n{fact.output.rstrip()}" if fact.output.strip() else ""
    return f"{fact.hook} {fact.result} after {took(fact.seconds)}{status}{output}"
