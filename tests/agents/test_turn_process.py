"""A turn with a process of its own, with real programs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from sortie.agents import SessionParams
from sortie.agents.exits import Failure
from sortie.agents.turn_process import TurnCommand, turn_processes
from sortie.model import RunId, TransportError
from sortie.model.turns import AgentEvent
from sortie.resources import shortage_behind
from sortie.transports.local import LocalTransport


class Deaf:
    """A reader to which output and exit statuses mean nothing."""

    def stdout(self, line: str) -> Sequence[AgentEvent]:
        return []

    def stderr(self, line: str) -> bool:
        return True

    def close(self, stderr: str) -> Sequence[AgentEvent]:
        return []

    def failure(self, status: int) -> Failure | None:
        return None


async def test_a_program_that_finds_no_memory_is_there(tmp_path: Path) -> None:
    """Its loader exits with 127, as shells do for a missing program; the turn meets a shortage."""
    params = SessionParams(
        run_id=RunId("run"),
        workspace=str(tmp_path),
        transport=LocalTransport("/usr/bin:/bin"),
        env={"PATH": "/usr/bin:/bin"},
        read_timeout=30.0,
        stop_grace=1.0,
    )
    argv = ("/bin/sh", "-c", "ulimit -v 1000; exec /bin/ls")

    def command(_prompt: str) -> TurnCommand:
        return TurnCommand(argv=argv, reader=Deaf())

    async with turn_processes("bot", params, command) as session:
        with pytest.raises(TransportError, match="bot could not start") as caught:
            await session.run_turn("x", lambda _: None)

    assert shortage_behind(caught.value) is not None


async def test_each_process_is_told_of_its_turn(tmp_path: Path) -> None:
    """By a variable of its own, where there is a trace; the session's holds elsewhere."""
    turns = iter(["00-first-01", None])
    params = SessionParams(
        run_id=RunId("run"),
        workspace=str(tmp_path),
        transport=LocalTransport("/usr/bin:/bin"),
        env={"PATH": "/usr/bin:/bin", "TRACEPARENT": "00-session-01"},
        read_timeout=30.0,
        stop_grace=1.0,
        traceparent=lambda: next(turns),
    )
    argv = ("/bin/sh", "-c", 'echo "$TRACEPARENT" >> told')

    def command(_prompt: str) -> TurnCommand:
        return TurnCommand(argv=argv, reader=Deaf())

    async with turn_processes("bot", params, command) as session:
        await session.run_turn("x", lambda _: None)
        await session.run_turn("y", lambda _: None)

    assert (tmp_path / "told").read_text().split() == ["00-first-01", "00-session-01"]
