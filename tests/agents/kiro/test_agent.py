"""The Kiro adapter over a scripted transport, on a virtual clock."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
import trio
from msgspec.structs import replace
from trio.testing import MockClock

from sortie.agents import McpServer, SessionParams
from sortie.agents.kiro import sources
from sortie.agents.kiro.agent import KiroAgent
from sortie.agents.kiro.settings import KiroSettings
from sortie.model import (
    AgentError,
    ErrorKind,
    RunId,
    TransportError,
    TurnOutcome,
    TurnResult,
)
from sortie.model.turns import (
    AgentEvent,
    AnswerGiven,
    ErrorsWritten,
    Launched,
    Notification,
    TurnUntraced,
    Usage,
)
from sortie.transports import Command, Exit
from tests.agents.fake_transport import Breaks, Ends, FakeTransport, Pause, Say, Script, Step

KEY = "sk-very-secret"
ANSWER = Say(1, b"\x1b[38;5;141m> \x1b[0mPONG")
TRAILER = Say(2, " ▸ Credits: 0.07 • Time: 4s\n".encode())
DONE = Ends(Exit(status=0))
GOOD_KEY = (Say(1, b"Authenticated with API key\n"), DONE)
HEADLESS = ("--no-interactive", "--wrap", "never")
COMPLETED = TurnResult(outcome=TurnOutcome.COMPLETED)
SPENT = [Usage(credits=0.07)]
LAST = [Notification(message="> PONG"), *SPENT, AnswerGiven(text="PONG")]


def turns(*scripts: Sequence[Step], whoami: Sequence[Step] = GOOD_KEY) -> Script:
    """Return a script whose turns follow one another; whoami has its own."""
    waiting = list(scripts)

    def script(command: Command) -> Sequence[Step]:
        return whoami if command.argv[-1] == "whoami" else waiting.pop(0)

    return script


def agent(settings: KiroSettings | None = None) -> KiroAgent:
    return KiroAgent(None, settings or KiroSettings(), trio.current_time)


def params(transport: FakeTransport) -> SessionParams:
    return SessionParams(
        run_id=RunId("run-1"),
        workspace="/work",
        transport=transport,
        env={"PATH": "/bin", "KIRO_API_KEY": KEY},
        stop_grace=2.0,
    )


@pytest.fixture(autouse=True)
def _no_conversations(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Have nothing in the home where Kiro's conversations are looked for, and look without a
    thread: a virtual clock does not wait for one."""

    async def at_once(work: Callable[..., object], *args: object, **_: object) -> object:
        return work(*args)

    monkeypatch.setattr(sources, "run_in_thread", at_once)
    monkeypatch.setenv("HOME", str(tmp_path))


class Heard:
    """Every batch that on_events got, and an event for the first; but no word on the conversation:
    nothing keeps one here."""

    def __init__(self) -> None:
        self.batches: list[list[AgentEvent]] = []
        self.launched = trio.Event()

    def __call__(self, events: Sequence[AgentEvent]) -> None:
        if not any(isinstance(event, TurnUntraced) for event in events):
            self.batches.append(list(events))
        self.launched.set()


async def run(transport: FakeTransport, prompt: str = "ping") -> tuple[TurnResult, Heard]:
    kiro, heard = agent(), Heard()
    async with kiro.session(params(transport)) as session:
        result = await session.run_turn(prompt, heard)
        assert transport.left_running == 0
        return result, heard


async def test_a_turn_that_completes(autojump_clock: MockClock) -> None:
    """One batch a chunk: the launch, a line's part, stderr, and the unterminated last line."""
    transport = FakeTransport(turns([Say(1, b"one\ntwo\nth"), ANSWER, TRAILER, DONE]))

    result, heard = await run(transport)

    assert result == COMPLETED
    ((launched,), *told) = heard.batches
    assert isinstance(launched, Launched)
    assert launched.process.pid == 2
    assert told == [
        [Notification(message="two", lines=2, text="one\ntwo")],
        [],
        [ErrorsWritten(text=" ▸ Credits: 0.07 • Time: 4s")],
        [Notification(message="th> PONG"), *SPENT, AnswerGiven(text="one\ntwo\nth> PONG")],
    ]


async def test_what_is_launched(autojump_clock: MockClock) -> None:
    """The turn runs in the workspace, with the session's environment and grace, and no stdin."""
    transport = FakeTransport(turns([DONE]))

    await run(transport)

    assert transport.commands[1] == Command(
        argv=("/bin/kiro-cli", "chat", *HEADLESS, "--trust-tools=", "ping"),
        cwd="/work",
        env={"PATH": "/bin", "KIRO_API_KEY": KEY},
        grace=2.0,
    )


async def test_resume_from_the_first_success_on(autojump_clock: MockClock) -> None:
    """A session resumes after a turn of its own completed, and goes on doing so."""
    failed: list[Step] = [Ends(Exit(status=1))]
    good: list[Step] = [ANSWER, TRAILER, DONE]
    transport = FakeTransport(turns(failed, good, failed, good))
    kiro = agent()
    async with kiro.session(replace(params(transport), resume_session_id="older")) as session:
        for _ in range(4):
            await session.run_turn("ping", Heard())

        resumed = ["--resume" in c.argv for c in transport.commands if "chat" in c.argv]
        assert resumed == [False, False, True, True]
        assert session.id == "older"


@pytest.mark.parametrize("where", ["stdout", "stderr", "whoami"])
async def test_the_key_never_leaves(where: str, autojump_clock: MockClock) -> None:
    """A program that prints its key leaks it into no event, warning, message or error."""
    leak = f"env: KIRO_API_KEY={KEY}\n".encode()
    script = turns(
        [Say(1 if where == "stdout" else 2, leak), Ends(Exit(status=1))],
        whoami=(Say(1, leak), Ends(Exit(status=1))) if where == "whoami" else GOOD_KEY,
    )

    try:
        result, heard = await run(FakeTransport(script))
    except AgentError as error:
        seen = str(error)
    else:
        seen = f"{result} {heard.batches}"

    assert "KIRO_API_KEY=***" in seen
    assert KEY not in seen


async def test_a_success_stands_against_a_later_deadline(autojump_clock: MockClock) -> None:
    """Once the exit was seen, what is still to read is read, and the result returned."""
    script: list[Step] = [ANSWER, Ends(Exit(status=0)), Pause(3), TRAILER, Pause(1)]
    kiro, heard = agent(), Heard()
    transport = FakeTransport(turns(script))
    async with kiro.session(params(transport)) as session:
        with trio.move_on_after(1) as scope:
            result = await session.run_turn("ping", heard)

        assert result == COMPLETED
        assert heard.batches[-1] == LAST
        assert scope.cancel_called
        assert transport.left_running == 0


async def test_a_deadline_in_the_instant_of_the_exit(autojump_clock: MockClock) -> None:
    """A cancellation that comes when the exit is known, but not yet seen, loses no trailer."""
    script: list[Step] = [Ends(Exit(status=0)), Say(1, b"late\n"), Pause(1), TRAILER]
    kiro = agent()
    async with kiro.session(params(FakeTransport(turns(script)))) as session:
        with trio.CancelScope() as scope:

            def cancel_at_a_line(events: Sequence[AgentEvent]) -> None:
                if Notification(message="late") in events:
                    scope.cancel()

            result = await session.run_turn("ping", cancel_at_a_line)

        assert result == COMPLETED
        assert scope.cancel_called


async def test_finishing_is_bounded(autojump_clock: MockClock) -> None:
    """Where the output never ends after the exit, the turn ends all the same."""
    transport = FakeTransport(turns([TRAILER, Ends(Exit(status=0)), Pause(10_000)]))

    result, _ = await run(transport)

    assert result == COMPLETED
    assert trio.current_time() < 20


async def test_leaving_after_the_exit_changes_nothing(autojump_clock: MockClock) -> None:
    """A success that was seen stands against the leaving too, and its last line is heard."""
    kiro, results, heard = agent(), list[TurnResult](), Heard()
    script: list[Step] = [Ends(Exit(status=0)), Pause(3), ANSWER, TRAILER]

    async def turn() -> None:
        results.append(await session.run_turn("ping", heard))

    wanted = params(FakeTransport(turns(script)))
    async with trio.open_nursery() as nursery, kiro.session(wanted) as session:
        nursery.start_soon(turn)
        await heard.launched.wait()
        await trio.sleep(1)

    assert results == [COMPLETED]
    assert heard.batches[-1] == LAST


async def test_a_session_that_was_left_starts_nothing(autojump_clock: MockClock) -> None:
    """The leaving overtakes a turn that has not begun."""
    heard, transport = Heard(), FakeTransport(turns())

    async with agent().session(params(transport)) as session:
        pass
    result = await session.run_turn("ping", heard)

    assert (result.outcome, result.error_kind) == (
        TurnOutcome.CANCELLED,
        ErrorKind.TURN_CANCELLED,
    )
    assert heard.batches == []
    assert len(transport.commands) == 1


async def test_output_lost_after_the_exit_changes_nothing(autojump_clock: MockClock) -> None:
    """Once exit and trailer were seen, a broken pipe is no failure."""
    script: list[Step] = [TRAILER, Ends(Exit(status=0)), Pause(1), Breaks(TransportError("gone"))]

    result, _ = await run(FakeTransport(turns(script)))

    assert result == COMPLETED


async def test_each_conversation_is_told_of_the_tools(autojump_clock: MockClock) -> None:
    """Behind its first prompt; the turns that resume it have that."""
    failed: list[Step] = [Ends(Exit(status=1))]
    good: list[Step] = [ANSWER, TRAILER, DONE]
    transport = FakeTransport(turns(failed, good, good))
    server = McpServer(name="sortie", argv=("/bin/sh", "x"), guide="You have tools.")
    async with agent().session(replace(params(transport), mcp_server=server)) as session:
        for _ in range(3):
            await session.run_turn("ping", Heard())

    told = [c.argv[-1] for c in transport.commands if "chat" in c.argv]
    assert told == ["ping\n\nYou have tools."] * 2 + ["ping"]
    assert not any("mcp" in word for c in transport.commands for word in c.argv)
