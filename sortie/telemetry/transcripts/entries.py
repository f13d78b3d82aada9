"""Entries of transcripts: what facts say in them, and how they are encoded; pure."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from enum import StrEnum

from msgspec import Struct

from sortie.facts import Fact
from sortie.model.numbers import counted, took
from sortie.telemetry import facts

_encode = json.JSONEncoder(ensure_ascii=False).encode


class Kind(StrEnum):
    """What a line of a transcript tells."""

    OUTPUT = "output"
    STDERR = "stderr"
    TOOL = "tool"
    PERMISSION = "permission"
    HOOK = "hook"
    TURN = "turn"
    RUN = "run"
    GAP = "gap"


class TranscriptEntry(Struct, frozen=True):
    """Lines that came at once, separated by line feeds; ``at`` is Unix seconds.

    ``ends``: nothing follows in this transcript. ``role`` is whose lines they are, None where they
    are those of the run and its agent.
    """

    at: float
    kind: Kind
    turn: int | None
    text: str
    ends: bool = False
    role: str | None = None

    @property
    def lines(self) -> int:
        """How many lines these are."""
        return self.text.count("\n") + 1


class TranscriptLine(Struct, frozen=True, kw_only=True):
    """One line: its number, which only ever rises, when it came, and in which turn; ``role`` as in
    an entry."""

    number: int
    at: datetime
    turn: int | None
    kind: Kind
    text: str
    role: str | None = None


def encoded(entry: TranscriptEntry, number: int) -> bytes:
    """Return an entry as a line of JSON; ``number`` is that of its first line."""
    # Written by hand: encoding the text alone costs a quarter of encoding all of it.
    turn = "null" if entry.turn is None else entry.turn
    head = f'{{"line":{number},"at":{entry.at:.3f},"turn":{turn},"kind":"{entry.kind.value}"'
    role = "" if entry.role is None else f',"role":{_encode(entry.role)}'
    return f'{head}{role},"text":{_encode(entry.text)}}}\n'.encode()


def decoded(payload: bytes) -> Iterator[TranscriptLine]:
    """Return the lines of encoded entries. Raises ValueError for anything else."""
    for record in payload.splitlines():
        try:
            document = json.loads(record)
            at = datetime.fromtimestamp(document["at"], UTC)
            kind, turn = Kind(document["kind"]), document["turn"]
            role = document.get("role")
            first, texts = int(document["line"]), document["text"].split("\n")
        except (KeyError, TypeError, AttributeError, OverflowError, OSError) as error:
            raise ValueError("no entry of a transcript") from error
        for number, text in enumerate(texts, first):
            yield TranscriptLine(number=number, at=at, turn=turn, kind=kind, text=text, role=role)


def as_text(line: TranscriptLine, visible: Callable[[str], str] = str) -> str:
    """Return time, turn, kind, role and text; ``visible`` makes the text harmless where it is
    shown."""
    at = line.at.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%SZ")
    turn = "-" if line.turn is None else str(line.turn)
    role = "" if line.role is None else f"{visible(line.role)}: "
    return f"{at} {turn:>3} {line.kind.value:<10} {role}{visible(line.text)}".rstrip()


TOOL_INDENT = "    "
"""Precedes each line of what a tool said."""


def entry_of(fact: Fact) -> tuple[Kind, str] | None:
    """Return the kind and text of a fact in a transcript, None where it has none.

    Output of the agent is an entry by itself, see TranscriptSink.
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
        case facts.RunTakenOver(daemon=daemon, turn=turn):
            return f"taken over from {daemon} in turn {turn}, which is told from its beginning on"
        case facts.RunStarted(issue=issue, attempt=attempt, host=host, agent=agent):
            about = f"{issue.identifier} ({issue.state}): {issue.shown_title}"
            answers = f"; answers {', '.join(fact.reaction)}" if fact.reaction else ""
            return f"run began: {about}; attempt {attempt}, {agent} on {host}{answers}"
        case facts.WorkspaceReady(path=path, created=created):
            return f"workspace {'made' if created else 'used again'}: {path}"
        case facts.ContainerStarted(container=container, image=image, digest=digest):
            return f"container {container} of image {image}, sha256:{digest}"
        case facts.SessionStarted(session_id=str(session)) | facts.SessionNamed(session_id=session):
            return f"session {session}"
        case facts.SessionWaiting(seconds=seconds, reason=reason):
            return f"waits {took(seconds)} until the session goes on: {reason}"
        case facts.SessionRefused(error_kind=kind, error=error):
            return f"no session: {kind.value}: {error}"
        case facts.DeliveryAdvanced(stage=stage, branch=branch, pull_request=url):
            return f"work {stage.value}: branch {branch}" + (f", {url}" if url else "")
        case facts.CommandVerified(command=command, status=told, seconds=seconds):
            return f"verified: {command}: {told} after {took(seconds)}"
        case facts.ReviewFinished(verdict=verdict, commit=commit, findings=count, reason=reason):
            why = f": {reason}" if reason else ""
            return f"review of {commit[:12]}: {verdict.words}, {counted(count, 'finding')}{why}"
        case facts.StatusFileRead(word=word, reason=reason):
            return f"the agent left the word {word!r}" + (f": {reason}" if reason else "")
        case facts.AgentNoted(text=text):
            return f"the agent notes: {text}"
        case facts.ToolCalled(tool=tool, result=result, error=error):
            return f"the agent called Sortie's tool {tool}: {result}" + (
                f": {error}" if error else ""
            )
        case facts.ToolsLost(error=error):
            return f"the run has no tools of Sortie's now: {error}"
        case facts.ToolClientLost(reason=reason):
            return f"a client of Sortie's tools was lost: {reason}"
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
    lines = "".join(f"\n{TOOL_INDENT}{line}" for line in said.splitlines())
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
