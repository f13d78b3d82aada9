"""What every recorded stream of the real program tells, and how its turn ended.

The streams are of version 2.1.328, without partial messages: their messages tell one output token
each, as at their beginning, and their results the rest.
"""

from __future__ import annotations

import pytest

from sortie.agents.exits import Failure, exit_failure
from sortie.model import ErrorKind
from sortie.model.turns import (
    AgentEvent,
    AnswerGiven,
    ModelAnswered,
    Notification,
    PermissionAsked,
    SessionKnown,
    ToolEnded,
    ToolStarted,
    TurnTraced,
    Usage,
)
from sortie.transports import Exit
from tests.agents.claude_code.reading import ID, STREAMS, recorded

MODEL = "claude-opus-5-5"
OVERLOADED = (
    "API Error: Repeated 529 Overloaded errors. The API is at capacity — this is usually temporary."
    " Try again in a moment. If it persists, check your inference gateway (127.0.0.1:8931)."
)
NO_TOUCH = (
    "touch in '/workspaces/DEMO-1/zz' needs approval. The path is inside the working directories"
    " for this session ('/workspaces/DEMO-1'), and Claude Code asks before a shell command creates,"
    " changes or removes files there."
)
NO_WRITE = (
    "Claude requested permissions to write to /workspaces/DEMO-1/a.txt, but you haven't granted it"
    " yet."
)
WRITTEN = (
    "File created successfully at: /workspaces/DEMO-1/a.txt (file state is current in your context"
    " — no need to Read it back)"
)
FILE = ("/workspaces/DEMO-1/a.txt",)


def began(session_id: str, mode: str = "default") -> list[AgentEvent]:
    """Return what an ``init`` tells in a session that had another id."""
    message = f"session began: {MODEL}, {mode}, 2.1.328"
    return [
        Notification(message=message),
        TurnTraced(model=MODEL),
        SessionKnown(session_id=session_id),
    ]


def said(message: str) -> Notification:
    return Notification(message=message)


def using(message: str) -> Notification:
    """Return what stands for the use of a tool, of which a tool's events tell."""
    return Notification(message=message, text="")


def answered(seconds: float = 1.0) -> ModelAnswered:
    return ModelAnswered(seconds=seconds, model=MODEL)


def used(input_tokens: int, output_tokens: int) -> Usage:
    """Return the sums since the session began."""
    return Usage(
        input_tokens=input_tokens,
        output_tokens=output_tokens,
        cached_tokens=0,
        cache_write_tokens=0,
        model=MODEL,
        cumulative=True,
    )


def cost(dollars: float) -> Usage:
    return Usage(cost=pytest.approx(dollars), currency="USD", cumulative=True)  # type: ignore[arg-type]


def filled(share: float) -> Usage:
    return Usage(context_share=share, cumulative=True)


def refused(question: str) -> PermissionAsked:
    return PermissionAsked(question=question, answer="refused: nobody was there to allow it")


def bash(name: str, command: str = "echo hi") -> ToolStarted:
    return ToolStarted(id=f"toolu_mock_{name}", name="Bash", kind="execute", about=command)


def write(name: str) -> ToolStarted:
    return ToolStarted(id=f"toolu_mock_{name}", name="Write", kind="edit", locations=FILE)


def ended(
    name: str, duration: float = 1.0, error: str | None = None, output: str | None = None
) -> ToolEnded:
    return ToolEnded(
        id=f"toolu_mock_{name}",
        failed=error is not None,
        duration=duration,
        error=error,
        output=output,
    )


EVENTS: dict[str, list[AgentEvent]] = {
    "text": [
        *began("973b3a43-3b41-4597-ac32-8a8c1f75363d"),
        answered(),
        used(100, 1),
        said("Resumed reply."),
        used(100, 20),
        cost(0.0008),
        filled(0.000101),
        AnswerGiven(text="Resumed reply."),
    ],
    "tool_use": [
        *began("ba6003eb-15b4-457d-8cdb-3d0fa98d9f1f", "bypassPermissions"),
        answered(),
        used(100, 1),
        using("Bash: echo hi"),
        bash("1296191cb28e4149"),
        ended("1296191cb28e4149", output="hi"),
        answered(),
        used(200, 2),
        using("Write: /workspaces/DEMO-1/a.txt"),
        write("82b961ade59c424d"),
        ended("82b961ade59c424d", output=WRITTEN),
        answered(),
        used(300, 3),
        said("Done."),
        used(300, 60),
        cost(0.0024),
        filled(0.000101),
        AnswerGiven(text="Done."),
    ],
    "api_retry": [
        *began("1fa700e2-26c0-4a6b-9e78-1397f68d9b67"),
        said("API retry 1 of 10 in 0.6 s: overloaded (529)"),
        said("API retry 2 of 10 in 1.0 s: overloaded (529)"),
        answered(3.0),
        used(100, 1),
        said("ok after retries"),
        used(100, 20),
        cost(0.0008),
        filled(0.000101),
        AnswerGiven(text="ok after retries"),
    ],
    "api_error": [
        *began("4775f5d0-86f7-4529-a7e8-9645ab36b438"),
        said("API retry 1 of 2 in 0.6 s: overloaded (529)"),
        said("API retry 2 of 2 in 1.1 s: overloaded (529)"),
        said(OVERLOADED),
    ],
    "max_turns": [
        *began("85513d25-aada-4d44-9d0a-937232a9e56a", "bypassPermissions"),
        answered(),
        used(20_000, 1),
        using("Bash: echo hi"),
        bash("710af19aa8ac49c0"),
        ended("710af19aa8ac49c0", output="hi"),
        answered(),
        used(40_000, 2),
        using("Bash: echo hi"),
        bash("78f8a81c6f844cd1"),
        ended("78f8a81c6f844cd1", output="hi"),
        used(40_000, 4_000),
        cost(0.24),
        filled(0.020001),
    ],
    "permission_denied": [
        *began("6e273d53-33a8-47d2-b748-81c0488dbba1"),
        answered(),
        used(100, 1),
        using("Bash: touch zz"),
        bash("55fb35e10df841bf", "touch zz"),
        refused(f"Bash: {NO_TOUCH}"),
        ended("55fb35e10df841bf", 2.0, NO_TOUCH),
        answered(),
        used(200, 2),
        using("Write: /workspaces/DEMO-1/a.txt"),
        write("3cd13d4143004439"),
        refused(f"Write: {NO_WRITE}"),
        ended("3cd13d4143004439", 2.0, NO_WRITE),
        answered(),
        used(300, 3),
        said("Denied then."),
        used(300, 60),
        cost(0.0024),
        filled(0.000101),
        AnswerGiven(text="Denied then."),
    ],
    "resume_unknown": [],
    "sigterm": began("bf752f6f-6368-4ffe-99e9-41a02c9f22fa", "bypassPermissions"),
}

FAILED = ErrorKind.TURN_FAILED
ENDS: dict[str, tuple[int, Failure | None]] = {
    "text": (0, None),
    "tool_use": (0, None),
    "api_retry": (0, None),
    "permission_denied": (0, None),
    "api_error": (1, Failure(FAILED, f"claude-code reported a failure: {OVERLOADED}")),
    "max_turns": (
        1,
        Failure(FAILED, "claude-code reported a failure: Reached maximum number of turns (2)"),
    ),
    "resume_unknown": (
        1,
        Failure(
            FAILED,
            f"claude-code reported a failure: No conversation found with session ID: {ID}",
        ),
    ),
    "sigterm": (
        143,
        Failure(ErrorKind.TURN_CANCELLED, "claude-code was ended from outside by SIGTERM"),
    ),
}


def test_every_stream_is_in_the_tables() -> None:
    """No recording is left out."""
    names = {path.stem for path in STREAMS.glob("*.jsonl")}

    assert names == set(EVENTS) == set(ENDS)


@pytest.mark.parametrize("name", EVENTS)
def test_what_a_stream_tells(name: str) -> None:
    """The events, in their order; tokens are sums, and each message counts once."""
    assert recorded(name).events == EVENTS[name]


@pytest.mark.parametrize("name", ENDS)
def test_how_a_stream_ends(name: str) -> None:
    """The outcome by its result, where there is one, and by the exit of its process."""
    status, expected = ENDS[name]
    reader = recorded(name).reader

    failure = exit_failure("claude-code", Exit(status=status)) or reader.failure(status)

    assert failure == expected


def test_only_an_unknown_conversation_is_begun_anew() -> None:
    """A resume of an id that nobody knows is told apart from all other ends."""
    lost = {name: recorded(name, resume=True).reader.conversation_lost for name in EVENTS}

    assert lost == {name: name == "resume_unknown" for name in EVENTS}
