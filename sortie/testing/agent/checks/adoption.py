"""A turn goes on under another daemon, which reads all that its program has written anew."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import trio
from msgspec.structs import replace

from sortie.model import ProcessIdentity, TurnOutcome, TurnResult
from sortie.model.turns import AnswerGiven, ErrorsWritten, Launched, Notification, Usage
from sortie.testing.agent.check import check
from sortie.testing.agent.scenarios import Scenario
from sortie.testing.agent.subject import Subject, ending_text
from sortie.testing.agent.turn_record import TurnRecord
from sortie.testing.checks import NotTried, require
from sortie.transports import Command, Exit, Process, Stdin, Transport

_PIECE = 7  # bytes: pieces that end within lines and characters


class _KeptTurn:
    """Starts programs of turns, and keeps the last one's command, memo, output and end."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport
        self.starts: list[tuple[Command, str]] = []
        self.output: list[tuple[int, bytes]] = []
        self.exit: Exit | None = None

    @asynccontextmanager
    async def start(self, command: Command, memo: str) -> AsyncIterator[Process]:
        """Start a program; see StartTurn."""
        self.starts.append((command, memo))
        async with self._transport.process(command) as process:
            yield _HeardProcess(process, self)


class _HeardProcess:
    """A process whose output and end are kept."""

    stdin = None

    def __init__(self, process: Process, kept: _KeptTurn) -> None:
        self._process = process
        self._kept = kept
        self.identity = process.identity

    async def output(self) -> AsyncIterator[tuple[int, bytes]]:
        async for chunk in self._process.output():
            self._kept.output.append(chunk)
            yield chunk

    async def wait(self) -> Exit:
        self._kept.exit = await self._process.wait()
        return self._kept.exit

    async def end(self) -> Exit:
        return await self._process.end()


class _OutputAnew:
    """A program that has ended, and whose output comes anew, in small pieces."""

    stdin = None

    def __init__(self, kept: _KeptTurn) -> None:
        self._kept = kept
        self.identity = ProcessIdentity(pid=1, started_at=0.0)

    async def output(self) -> AsyncIterator[tuple[int, bytes]]:
        for stream, chunk in self._kept.output:
            for at in range(0, len(chunk), _PIECE):
                await trio.lowlevel.checkpoint()
                yield stream, chunk[at : at + _PIECE]

    async def wait(self) -> Exit:
        await trio.lowlevel.checkpoint()
        assert self._kept.exit is not None
        return self._kept.exit

    async def end(self) -> Exit:
        return await self.wait()


@check("adoption.success", "a turn that is gone on with is told as it was by the first daemon")
async def success(subject: Subject) -> None:
    """Its program is not started again; the turn after it is started as ever."""
    await _told_alike(subject, subject.scenario("success"))


@check("adoption.failure", "a failure is told as it was, too, where it is gone on with")
async def failure(subject: Subject) -> None:
    """It has the same kind and the same message."""
    await _told_alike(subject, subject.scenario("failure"))


async def _told_alike(subject: Subject, scenario: Scenario) -> None:
    if not subject.adapter.adoptable:
        raise NotTried("the adapter does not say that another daemon can go on with its turns")
    kept = _KeptTurn(subject.transport)
    async with subject.session(scenario, start_turn=kept.start) as session:
        first, told = await subject.turn(session, scenario.prompt)
    require(len(kept.starts) == 1, f"start_turn was called {len(kept.starts)} times for a turn")
    command, memo = kept.starts[0]
    require(not isinstance(command.stdin, Stdin), "the program is given something after its start")

    again: list[Command] = []

    @asynccontextmanager
    async def go_on(command: Command, _memo: str) -> AsyncIterator[Process]:
        again.append(command)
        if len(again) == 1:
            yield _OutputAnew(kept)
            return
        async with subject.transport.process(command) as process:
            yield process

    async with subject.session(scenario, start_turn=go_on, adopted=memo) as session:
        second, heard = await subject.turn(session, "")
        require(len(again) == 1, f"start_turn was called {len(again)} times to go on with a turn")
        launched = heard.events[0]
        require(isinstance(launched, Launched) and launched.adopted, "Launched is not `adopted`")
        require(_ending(second) == _ending(first), f"it ended otherwise: {ending_text(second)}")
        require(_words(heard) == _words(told), "it was told otherwise")
        require(heard.session_id == told.session_id, "its session has another id")
        if first.outcome is TurnOutcome.COMPLETED:
            following, _ = await subject.turn(session, scenario.prompt)
            require(following.outcome is TurnOutcome.COMPLETED, ending_text(following))
            require(len(again) == 2, "the turn after it was not started by start_turn")


def _ending(result: TurnResult) -> object:
    return (result.outcome, result.error_kind, result.message)


def _words(record: TurnRecord) -> object:
    """Return what must be told alike, however it was parted: words, answers and what was used.

    Tools, times and the share of the context are not: these need the agent's own files as they were
    before the turn, or the clock of the first daemon.
    """
    said = [event for event in record.events if isinstance(event, Notification)]
    errors = [event.text for event in record.events if isinstance(event, ErrorsWritten)]
    answers = [event for event in record.events if isinstance(event, AnswerGiven)]
    used = [
        replace(event, context_share=None) for event in record.events if isinstance(event, Usage)
    ]
    last = said[-1].message if said else ""
    lines = sum(event.lines for event in said)
    return last, lines, "\n".join(errors), answers, [one for one in used if one != Usage()]
