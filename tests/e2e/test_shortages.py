"""A daemon that runs out of descriptors, or of processes and threads, and gets them back."""

from __future__ import annotations

import resource
import uuid
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import psutil
import pytest
import trio

from tests.e2e.conftest import Start
from tests.e2e.daemon import Daemon, run_command
from tests.e2e.place import PATIENCE, Place
from tests.e2e.stubborn import SEARCHING
from tests.ports import free_port

PIDS = Path("/sys/fs/cgroup/pids")

needs_prlimit = pytest.mark.skipif(
    not hasattr(resource, "prlimit"), reason="limits of another process cannot be set here"
)


@contextmanager
def no_descriptors(daemon: Daemon) -> Iterator[None]:
    """Let the daemon open nothing meanwhile, whatever it closes."""
    pid = daemon.process.pid
    before = resource.prlimit(pid, resource.RLIMIT_NOFILE)
    resource.prlimit(pid, resource.RLIMIT_NOFILE, (3, before[1]))
    try:
        yield
    finally:
        with suppress(ProcessLookupError):
            resource.prlimit(pid, resource.RLIMIT_NOFILE, before)


class PidsGroup:
    """A control group with a limit of processes and threads."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def take_in(self, pid: int) -> None:
        (self._path / "cgroup.procs").write_text(str(pid))

    def allow(self, more: int | None) -> None:
        """Allow so many beyond those that there are; None is no limit."""
        now = int((self._path / "pids.current").read_text())
        limit = "max" if more is None else str(now + more)
        (self._path / "pids.max").write_text(limit)


@pytest.fixture
def pids() -> Iterator[PidsGroup]:
    path = PIDS / f"sortie-{uuid.uuid4().hex[:8]}"
    try:
        path.mkdir()
    except OSError:
        pytest.skip("no control group of this kind can be made here")
    yield PidsGroup(path)
    for pid in (path / "cgroup.procs").read_text().split():
        (PIDS / "cgroup.procs").write_text(pid)
    path.rmdir()


async def until_state(place: Place, state: str, *issues: str) -> None:
    """Wait until the issues are in a state."""
    with trio.fail_after(PATIENCE * 2):
        while any(place.state_of(name) != state for name in issues):
            await trio.sleep(0.05)


@needs_prlimit
async def test_a_run_that_nobody_can_look_at_is_not_over(place: Place, start: Start) -> None:
    """Its agent ends and leaves a process; no second run starts before that is seen."""
    place.add_issue("a", "delay=2 child=setsid")
    async with start(**SEARCHING) as daemon:
        with trio.fail_after(PATIENCE):
            while not place.agents("child"):
                await trio.sleep(0.02)
        agent = psutil.Process(place.first_agent())
        with no_descriptors(daemon):
            began = await daemon.line("shortage.began", resource="files")
            with trio.fail_after(PATIENCE):
                while agent.is_running() and agent.status() != psutil.STATUS_ZOMBIE:
                    await trio.sleep(0.05)
            await trio.sleep(1.5)  # in which a wrong second run would start
            runs, ends = len(daemon.lines("run.started")), len(daemon.lines("run.finished"))
            left = place.programs()
        await daemon.line("shortage.ended", resource="files")
        await until_state(place, "Human Review", "a")
        held = daemon.lines("issue.held")
        told = len(daemon.lines("shortage.began"))

    assert "limit of open files" in began["error"]
    assert (runs, ends) == (1, 0)
    assert left
    assert held == []
    assert told == 1


async def test_few_descriptors_and_many_connections_hold_no_issue(
    place: Place, nursery: trio.Nursery
) -> None:
    """With 64 files and a crowd of idle clients everything is worked on, one run at a time."""
    names = [f"i{number}" for number in range(12)]
    for name in names:
        place.add_issue(name, "delay=0.3")
    place.write_workflow(agent={"command": "sortie-kiro-sim", "max_concurrent_agents": 10})
    port = free_port()
    limited = ("prlimit", "--nofile=64:64", "--", *run_command(port=port))
    async with Daemon(place, nursery, limited, port) as daemon:
        await daemon.line("http.listening")
        with ExitStack() as crowd:
            for _ in range(40):
                stream = await trio.open_tcp_stream("127.0.0.1", port)
                crowd.callback(stream.socket.close)
            await until_state(place, "Human Review", *names)
        held, crashes = daemon.lines("issue.held"), daemon.lines("adapter.crashed")

    history = await place.history()
    kinds = {row["error_kind"] for row in history if row["status"] != "succeeded"}
    assert held == crashes == []
    assert kinds <= {"port_exit"}


async def test_a_shortage_of_threads_is_named_and_passes(
    place: Place, start: Start, pids: PidsGroup
) -> None:
    """While no thread can be had nothing is blamed; afterwards everything is worked on."""
    names = [f"i{number}" for number in range(10)]
    async with start() as daemon:
        await daemon.ready()
        pids.take_in(daemon.process.pid)
        await trio.sleep(11)  # after ten seconds idle threads end
        pids.allow(0)
        for name in names:
            place.add_issue(name)
        await daemon.line("shortage.began", resource="processes")
        await daemon.ready(503, "processes and threads")
        pids.allow(None)
        await daemon.line("shortage.ended", resource="processes")
        await daemon.ready()
        await until_state(place, "Human Review", *names)
        held, crashes = daemon.lines("issue.held"), daemon.lines("adapter.crashed")
        told = len(daemon.lines("shortage.began"))

    assert held == crashes == []
    assert told == 1


@needs_prlimit
async def test_a_limit_that_forbids_the_mark_is_told_once(
    place: Place, nursery: trio.Nursery
) -> None:
    """A daemon that its descendants' mark cannot be put on says so at its start, and works."""
    place.write_workflow()
    place.add_issue("A")
    port = free_port()
    limited = (
        "env",
        "SORTIE_ISOLATION=none",
        "sh",
        "-c",
        'ulimit -m 1000000; exec "$@"',
        "sh",
        *run_command(port=port),
    )

    async with Daemon(place, nursery, limited, port) as daemon:
        told = await daemon.line("host.noticed")
        await daemon.line("run.finished")

    assert told["host"] == "local"
    assert "resident memory" in told["message"]
    assert len(daemon.lines("host.noticed")) == 1
