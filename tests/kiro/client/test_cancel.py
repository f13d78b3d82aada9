"""That nothing of a turn outlives it, however it ends."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
from typing import Any

import anyio
import pytest

from sortie.kiro import KiroSDKClient, ResultMessage, TurnTimeoutError, query
from tests.kiro.client.rig import BACKENDS, WAYS, Rig, run

KINDS = ("plain", "setsid", "double_fork", "hold_stdout", "cleared", "overwritten")
# Without its parent, its group and its environment, only Linux can tell whose a process is.
ESCAPED = ("cleared", "overwritten")

_INTERRUPTED = """
import sys
from sortie.kiro import KiroAgentOptions, query_sync
query_sync(prompt="x", options=KiroAgentOptions(cwd={cwd!r}, env={env!r}, stop_grace=1.0))
"""


def hanging(kind: str, **more: Any) -> dict[str, Any]:
    """Return the options of a turn that has a child and never ends."""
    if kind in ESCAPED and sys.platform != "linux":
        pytest.skip("only Linux marks what has lost parent, group and environment")
    return {"SORTIE_RUN_ID": "r-1", "KIRO_SIM_CHILD": kind, "KIRO_SIM_HANG": "1", **more}


async def until_it_has_a_child(rig: Rig) -> None:
    while not rig.events("child"):
        await anyio.sleep(0.01)


def has_a_child(rig: Rig) -> bool:
    deadline = time.monotonic() + 30
    while not rig.events("child") and time.monotonic() < deadline:
        time.sleep(0.01)
    return bool(rig.events("child"))


@pytest.mark.parametrize(
    ("backend", "kind"), [*(("trio", kind) for kind in KINDS), ("asyncio", "setsid")]
)
def test_cancelling_ends_the_whole_tree(rig: Rig, backend: str, kind: str) -> None:
    """Children that have left the group, the parent or the environment are gone as well."""

    async def main() -> None:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(consume)
            await until_it_has_a_child(rig)
            tasks.cancel_scope.cancel()

    async def consume() -> None:
        async for _ in query(prompt="x", options=rig.options(**hanging(kind))):
            pass

    run(backend, main)

    assert len(rig.events("child")) == 1
    assert rig.alive() == []


@pytest.mark.parametrize("kind", ["hold_stdout", "cleared"])
def test_what_ignores_the_polite_signal_is_killed(rig: Rig, kind: str) -> None:
    """SIGKILL follows after the grace time, for the program and its child."""
    with pytest.raises(TurnTimeoutError):
        rig.ask("sync", "x", timeout=1.5, **hanging(kind, KIRO_SIM_IGNORE_SIGTERM="1"))

    assert len(rig.events("child")) == 1
    assert rig.alive() == []


@pytest.mark.parametrize(
    ("way", "kind"), [*((way, "hold_stdout") for way in WAYS), ("trio", "cleared")]
)
def test_a_turn_that_ends_well_leaves_nothing_either(rig: Rig, way: str, kind: str) -> None:
    """What a tool has left behind ends with the turn, also where it holds the output open."""
    more = {**hanging(kind), "KIRO_SIM_HANG": "0"}

    messages = rig.ask(way, "x", **more)

    assert isinstance(messages[-1], ResultMessage)
    assert len(rig.events("child")) == 1
    assert rig.alive() == []


def test_a_second_cancellation_kills_at_once(rig: Rig) -> None:
    """asyncio can cancel a task while it cleans up; then there is no grace time."""

    async def main() -> float:
        more = hanging("cleared", KIRO_SIM_IGNORE_SIGTERM="1", stop_grace=20.0)
        task = asyncio.ensure_future(collect(more))
        await until_it_has_a_child(rig)
        began = time.monotonic()
        task.cancel()
        await asyncio.sleep(0.3)
        assert len(rig.alive()) == 2
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        return time.monotonic() - began

    async def collect(more: dict[str, Any]) -> None:
        async for _ in query(prompt="x", options=rig.options(**more)):
            pass

    took = asyncio.run(main())

    assert took < 20  # the grace time
    assert rig.alive() == []


def test_an_interrupt_ends_a_script_and_its_turn(rig: Rig) -> None:
    """Ctrl-C in a script that uses ``query_sync`` leaves no process behind."""
    options = rig.options(**hanging("setsid"))
    code = _INTERRUPTED.format(cwd=str(rig.workspace), env=dict(options.env or {}))
    script = subprocess.Popen([sys.executable, "-c", code], stderr=subprocess.PIPE)

    assert has_a_child(rig)
    os.kill(script.pid, signal.SIGINT)
    _, said = script.communicate(timeout=30)

    assert said.splitlines()[-1] == b"KeyboardInterrupt"
    assert rig.alive() == []


@pytest.mark.parametrize("backend", BACKENDS)
def test_leaving_the_client_ends_its_turn(rig: Rig, backend: str) -> None:
    """A prompt whose response nobody receives ends with the client."""

    async def main() -> None:
        async with KiroSDKClient(rig.options(**hanging("setsid"))) as client:
            await client.query("x")
            await until_it_has_a_child(rig)

    run(backend, main)

    assert len(rig.events("child")) == 1
    assert rig.alive() == []


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_cancelled_launch_leaves_nothing(rig: Rig, backend: str) -> None:
    """The question who is logged in is part of the turn."""

    async def main() -> None:
        with anyio.move_on_after(0.5):
            async with KiroSDKClient(
                rig.options(KIRO_API_KEY="", KIRO_SIM_WHOAMI_DELAY="60", system_prompt="x")
            ) as client:
                await client.query("x")

    run(backend, main)

    assert (rig.alive(), rig.agent_files()) == ([], [])


def test_a_turn_within_a_turn_is_told_apart(rig: Rig) -> None:
    """A turn that Kiro's tools have started ends with the one around it."""
    more = hanging("cleared")
    outer = rig.options(**more, timeout=3.0)
    code = _INTERRUPTED.format(cwd=str(rig.workspace), env=dict(outer.env or {}))
    nested = rig.program.parent / "nested.py"
    nested.write_text(code)
    kiro = rig.program.parent / "outer"
    kiro.write_text(f"#!/bin/sh\n'{sys.executable}' '{nested}' &\nsleep 60\n")
    kiro.chmod(0o755)

    with pytest.raises(TurnTimeoutError):
        rig.ask("sync", "x", cli_path=kiro, timeout=3.0, **more)

    assert len(rig.events("child")) == 1
    assert rig.alive() == []
