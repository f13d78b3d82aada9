"""The suite for agents finds what an adapter forgets: each gap that one may have fails it."""

from __future__ import annotations

import os
import shlex
from collections.abc import AsyncIterator, Awaitable, Callable, Collection
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import trio

from sortie.agents import OnEvents, SessionParams
from sortie.agents.launch import check_workspace
from sortie.model import ErrorKind, RunId, TurnOutcome, TurnResult
from sortie.model.turns import NOTIFICATION_LIMIT, Launched, Notification
from sortie.transports import Command, Exit
from sortie.transports.local import LocalTransport, become_subreaper
from tests.contract import test_agent as suite

LIMIT = 10 * 1024 * 1024
CANCELLED = TurnResult(
    outcome=TurnOutcome.CANCELLED, error_kind=ErrorKind.TURN_CANCELLED, message="cancelled"
)

Forgets = Collection[str]


class ShellSession:
    """A session whose prompts are shell scripts; it does by hand what the engine would do."""

    id = ""

    def __init__(self, params: SessionParams, forgets: Forgets) -> None:
        self._params = params
        self._forgets = forgets
        self._scope: trio.CancelScope | None = None
        self._idle = trio.Event()
        self._left = False
        self._rest = b""

    async def run_turn(self, prompt: str, on_events: OnEvents) -> TurnResult:
        if self._scope is not None and "one at a time" not in self._forgets:
            raise RuntimeError("a turn is running")
        if self._left and "leaving" not in self._forgets:
            return CANCELLED
        self._scope, self._idle = trio.CancelScope(), trio.Event()
        try:
            with self._scope:
                return await self._run(prompt, on_events)
            return CANCELLED
        finally:
            self._scope = None
            self._idle.set()

    async def leave(self) -> None:
        self._left = True
        if self._scope is not None:
            self._scope.cancel()
            await self._idle.wait()

    async def _run(self, prompt: str, on_events: OnEvents) -> TurnResult:
        params = self._params
        command = Command(
            argv=("/bin/sh", "-c", prompt), cwd=params.workspace, env=params.env, grace=0.5
        )
        self._rest = b""
        async with params.transport.process(command) as process:
            on_events([Launched(process=process.identity)])
            async for source, chunk in process.output():
                if source == 1:
                    on_events(self._lines(chunk))
                elif "stderr" not in self._forgets:
                    on_events([])
                if len(self._rest) > LIMIT and "the limit" not in self._forgets:
                    return _failed(ErrorKind.PORT_EXIT)
            if self._rest and "the last line" not in self._forgets:
                on_events([_notification(self._rest)])
            return self._result(await process.wait())

    def _lines(self, chunk: bytes) -> list[Notification]:
        *lines, self._rest = (self._rest + chunk).split(b"\n")
        cut = "500 characters" not in self._forgets
        return [_notification(line, cut=cut) for line in lines if line]

    def _result(self, end: Exit) -> TurnResult:
        if end.status == 0:
            return TurnResult(outcome=TurnOutcome.COMPLETED)
        if "the exits" not in self._forgets:
            if end.status in (137, 143) or end.signal in (9, 15):
                return CANCELLED
            if end.status == 127:
                return _failed(ErrorKind.AGENT_NOT_FOUND)
        return _failed(ErrorKind.PORT_EXIT)


class ShellAgent:
    """Runs shell scripts, and forgets some of what the port asks for."""

    def __init__(self, forgets: Forgets) -> None:
        self._forgets = forgets

    @asynccontextmanager
    async def session(self, params: SessionParams) -> AsyncIterator[ShellSession]:
        if "the workspace" not in self._forgets:
            await check_workspace(params.transport, params.workspace)
        session = ShellSession(params, self._forgets)
        try:
            yield session
        finally:
            await session.leave()


def _notification(line: bytes, *, cut: bool = True) -> Notification:
    text = line.decode()
    return Notification(message=text[:NOTIFICATION_LIMIT] if cut else text)


def _failed(kind: ErrorKind) -> TurnResult:
    return TurnResult(outcome=TurnOutcome.FAILED, error_kind=kind, message="it failed")


def end_script(end: str) -> str:
    """Return a script that ends in a given way."""
    how, what = end.split()
    return f"exit {what}" if how == "exit" else f"kill -{what} $$"


def shell(folder: Path, *forgets: str) -> suite.Subject:
    """Return an adapter that forgets some things."""
    folder.mkdir()
    return suite.Subject(
        agent=ShellAgent(forgets),
        params=SessionParams(
            run_id=RunId("run-shell"),
            workspace=str(folder),
            transport=LocalTransport(),
            env={"PATH": os.defpath, "SORTIE_RUN_ID": f"shell-{os.getpid()}"},
        ),
        success="echo hello",
        failure="exit 1",
        long_line=f"echo {shlex.quote('x' * 5000)}",
        hang="sleep 600",
        ends=end_script,
        unterminated="printf one'\\n'two",
        last_words="two",
        too_long="head -c 10485761 /dev/zero; sleep 600",
        noise="head -c 2000000 /dev/zero >&2",
    )


@pytest.fixture
def subject(tmp_path: Path) -> suite.Subject:
    """Give an adapter that forgets nothing."""
    become_subreaper()
    return shell(tmp_path / "whole")


Test = Callable[[suite.Subject], Awaitable[None]]
TESTS: dict[str, Test] = {
    "the exits": lambda it: suite.test_the_end_of_a_process_means_the_same(it, "exit 143"),
    "the last line": suite.test_an_unterminated_last_line_counts,
    "the limit": suite.test_a_line_that_is_too_long_fails_the_turn,
    "stderr": suite.test_all_output_is_read_and_is_a_sign_of_life,
    "500 characters": suite.test_notifications_are_bounded,
    "one at a time": suite.test_turns_are_serial,
    "leaving": suite.test_leaving_is_safe_at_any_time,
}


@pytest.mark.parametrize("forgotten", TESTS)
async def test_an_adapter_that_forgets_nothing_passes(
    forgotten: str, subject: suite.Subject
) -> None:
    """Also one that shares no code with those that are built in."""
    await TESTS[forgotten](subject)


@pytest.mark.parametrize("forgotten", TESTS)
async def test_what_an_adapter_forgets_is_found(
    forgotten: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each rule that is left out fails the test that is about it."""
    become_subreaper()
    monkeypatch.setattr(suite, "LIMIT", 3)  # seconds; it hangs where it forgets the limit
    found = (AssertionError, pytest.fail.Exception, BaseExceptionGroup, trio.TooSlowError)

    with pytest.raises(found):
        await TESTS[forgotten](shell(tmp_path / "gap", forgotten))


async def test_an_adapter_that_forgets_the_workspace_is_found(tmp_path: Path) -> None:
    """It would run wherever the daemon is."""
    become_subreaper()
    subject = shell(tmp_path / "gap", "the workspace")

    with pytest.raises((AssertionError, pytest.fail.Exception)):
        await suite.test_a_session_needs_a_workspace(subject, "relative", tmp_path)
