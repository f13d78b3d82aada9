"""What forks and exits all the time is caught although each look at all processes is late."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
import trio

from sortie.model import RunId
from sortie.transports.local import observer, process_table, successors
from tests.contract.transport.launching import CHAIN
from tests.transports.endings import local_transport
from tests.transports.leftovers import is_alive

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="elsewhere they are not chased")


async def test_a_sweep_on_a_busy_machine_ends_a_chain_of_processes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each link of it lives for 3 ms, and is gone before the look that has seen it is over."""
    cookie, link = RunId(str(uuid.uuid4())), tmp_path / "link"
    look = process_table.read_process_table

    def late(*args: Any, **options: Any) -> Any:
        table = look(*args, **options)
        time.sleep(0.05)
        return table

    monkeypatch.setattr(observer, "read_process_table", late)
    async with local_transport("children") as transport:
        command = [*CHAIN, str(link), "apart", "exit"]
        await trio.run_process(command, env={**os.environ, "SORTIE_RUN_ID": cookie})

        ended = await transport.sweep([cookie], grace=0.1)
        link.unlink(missing_ok=True)
        await trio.sleep(0.1)

    assert not link.exists()
    assert ended > 0


async def test_processes_of_other_runs_are_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of what begins meanwhile only what has the cookie is killed, and nothing from before."""
    monkeypatch.setattr(successors, "ENOUGH", 0.5)
    monkeypatch.setattr(successors, "LONGEST", 60.0)
    wanted, other = (RunId(str(uuid.uuid4())) for _ in range(2))
    looking = threading.Event()
    killed: list[int] = []

    def pids_now() -> list[int]:
        found = process_table.pids_now()
        looking.set()
        return found

    async def chase() -> None:
        seen = await trio.to_thread.run_sync(successors.kill_successors, [wanted])
        killed.extend(one.pid for one in seen)

    monkeypatch.setattr(successors, "pids_now", pids_now)
    with parent_of_one(other) as stranger, parent_of_one(wanted) as ours:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(chase)
            await trio.to_thread.run_sync(looking.wait)
            spared, hit = child_of(stranger), child_of(ours)

        assert killed == [hit]
        assert is_alive(spared)
        assert stranger.poll() is None
        assert ours.wait() == 128 + 9


@contextmanager
def parent_of_one(cookie: RunId) -> Iterator[subprocess.Popen[bytes]]:
    """Give a process of a run that starts a child when it is told to, and ends as that does."""
    script = "read line; sleep 1000 & echo $!; wait $!"
    env = {**os.environ, "SORTIE_RUN_ID": cookie}
    pipe = subprocess.PIPE
    with subprocess.Popen(
        ["sh", "-c", script], env=env, stdin=pipe, stdout=pipe, start_new_session=True
    ) as process:
        try:
            yield process
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)


def child_of(process: subprocess.Popen[bytes]) -> int:
    """Have it start its child; return the child's pid."""
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(b"\n")
    process.stdin.flush()
    return int(process.stdout.readline())
