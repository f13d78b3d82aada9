"""That nothing of a turn outlives it, however it ends."""

from __future__ import annotations

import asyncio
import os
import resource
import signal
import subprocess
import sys
import time
from typing import Any

import anyio
import psutil
import pytest

from sortie.kiro import KiroSDKClient, ResultMessage, query
from sortie.kiro.client.process_tree import TURN_COOKIE
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
    """Wait until there is one, and it has become what it was to become."""
    while not rig.events("child"):
        await anyio.sleep(0.01)
    (child,) = rig.events("child")
    while (
        child["kind"] == "cleared" and TURN_COOKIE in psutil.Process(child["child_pid"]).environ()
    ):
        await anyio.sleep(0.01)


def has_a_child(rig: Rig) -> bool:
    deadline = time.monotonic() + 30
    while not rig.events("child") and time.monotonic() < deadline:
        time.sleep(0.01)
    return bool(rig.events("child"))


def cancel_when_it_has_a_child(rig: Rig, backend: str, **more: Any) -> None:
    """Run a turn, and cancel it in the middle."""

    async def main() -> None:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(consume)
            await until_it_has_a_child(rig)
            tasks.cancel_scope.cancel()

    async def consume() -> None:
        async for _ in query(prompt="x", options=rig.options(**more)):
            pass

    run(backend, main)


@pytest.mark.parametrize(
    ("backend", "kind"), [*(("trio", kind) for kind in KINDS), ("asyncio", "setsid")]
)
def test_cancelling_ends_the_whole_tree(rig: Rig, backend: str, kind: str) -> None:
    """Children that have left the group, the parent or the environment are gone as well."""
    cancel_when_it_has_a_child(rig, backend, **hanging(kind))

    assert len(rig.events("child")) == 1
    assert rig.alive() == []


@pytest.mark.parametrize("kind", ["setsid", "double_fork"])
def test_without_a_mark_the_environment_tells(
    rig: Rig, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where the mark cannot be set, a child that has lost its parent is known all the same."""

    def forbidden(*_: object) -> None:
        raise PermissionError

    monkeypatch.setattr(resource, "prlimit", forbidden)

    cancel_when_it_has_a_child(rig, "trio", **hanging(kind))

    assert len(rig.events("child")) == 1
    assert rig.alive() == []


@pytest.mark.parametrize(("backend", "kind"), [("trio", "cleared"), ("asyncio", "hold_stdout")])
def test_what_ignores_the_polite_signal_is_killed(rig: Rig, backend: str, kind: str) -> None:
    """SIGKILL follows after the grace time, for the program and its child."""
    more = hanging(kind, KIRO_SIM_IGNORE_SIGTERM="1", stop_grace=0.2)

    cancel_when_it_has_a_child(rig, backend, **more)

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


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_cancelled_turn_may_clean_up(rig: Rig, backend: str) -> None:
    """SIGTERM comes first, and the time between it and SIGKILL can be used."""
    begun, cleaned = rig.workspace / "begun", rig.workspace / "cleaned"
    rig.script(
        f"#!/bin/sh\ntrap 'sleep 0.3; touch {cleaned}; exit' TERM\ntouch {begun}\n"
        "while :; do sleep 0.05; done\n"
    )

    async def main() -> None:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(consume)
            while not begun.exists():
                await anyio.sleep(0.01)
            tasks.cancel_scope.cancel()

    async def consume() -> None:
        async for _ in query(prompt="x", options=rig.options(stop_grace=20.0)):
            pass

    run(backend, main)

    assert cleaned.exists()


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
    deadline = time.monotonic() + 30
    while rig.alive() and time.monotonic() < deadline:
        time.sleep(0.01)  # nobody waits for what was killed
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


def test_a_turn_within_a_turn_ends_with_it(rig: Rig) -> None:
    """What the inner turn has started is known to the outer one, which ends it."""
    more = hanging("cleared")
    env = dict(rig.options(**more).env or {})
    nested, kiro = rig.program.with_name("nested.py"), rig.program.with_name("outer")
    nested.write_text(_INTERRUPTED.format(cwd=str(rig.workspace), env=env))
    kiro.write_text(f"#!/bin/sh\n'{sys.executable}' '{nested}' &\nsleep 60\n")
    kiro.chmod(0o755)

    cancel_when_it_has_a_child(rig, "trio", cli_path=kiro, **more)

    assert len(rig.events("child")) == 1
    assert rig.alive() == []
