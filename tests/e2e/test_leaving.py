"""Exit codes, ports, and a workspace root that fails."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest
import trio

from tests.e2e.conftest import Start
from tests.e2e.daemon import Daemon
from tests.e2e.place import SORTIE, Place
from tests.ports import free_port

DEFAULT_PORT = 7678


async def test_idle_with_nothing_left_is_0(place: Place, start: Start) -> None:
    """Issues in states that nobody works on do not count as left."""
    place.add_issue("A")
    place.add_issue("B", state="Backlog")
    place.add_issue("C", state="Done")

    async with start("--exit-when-idle") as daemon:
        code = await daemon.exit_code()

    assert code == 0
    assert place.state_of("A") == "Human Review"
    assert daemon.lines("issue.left") == []


async def test_idle_with_issues_left_is_3(place: Place, start: Start) -> None:
    """A held issue and one that is blocked are named."""
    place.add_issue("HELD", "status=blocked")
    place.add_issue("BLOCKED", blocked_by=["HELD"])

    async with start("--exit-when-idle") as daemon:
        code = await daemon.exit_code()

    assert code == 3
    left = {line["issue"]: line["reason"] for line in daemon.lines("issue.left")}
    assert left.keys() == {"HELD", "BLOCKED"}
    assert "agent_blocked" in left["HELD"]
    assert "HELD (In Progress)" in left["BLOCKED"]


@pytest.mark.full
async def test_a_retry_is_waited_for(place: Place, start: Start) -> None:
    """An issue that failed and waits is not idleness."""
    place.write_workflow(
        agent={"command": "sortie-kiro-sim", "max_turns": 1, "max_retry_backoff_ms": 1000}
    )
    place.add_issue("A", "fail_first=2")

    async with start("--exit-when-idle") as daemon:
        code = await daemon.exit_code()

    assert code == 0
    assert [line["status"] for line in daemon.lines("run.finished")] == [
        "failed",
        "failed",
        "succeeded",
    ]


@contextmanager
def listening(port: int) -> Iterator[None]:
    """Hold a port."""
    with socket.socket() as sock:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        sock.bind(("127.0.0.1", port))
        sock.listen()
        yield


@pytest.fixture
def default_port_taken() -> Iterator[None]:
    """Hold the default port, unless somebody else holds it anyway."""
    try:
        with listening(DEFAULT_PORT):
            yield
    except OSError:
        yield


async def test_a_default_port_that_is_taken_is_passed_over(
    place: Place, nursery: trio.Nursery, default_port_taken: None
) -> None:
    """The next free one is taken, with a warning, and it answers."""
    command = (SORTIE, "run", "--log-format", "json")

    async with Daemon(place, nursery, command, None) as daemon:
        taken = await daemon.line("http.port_taken")
        listens = await daemon.line("http.listening")
        daemon.url = listens["url"].rstrip("/")
        answer = await daemon.get("/livez")

    assert (taken["level"], taken["port"]) == ("warning", DEFAULT_PORT)
    port = int(daemon.url.rpartition(":")[2])
    assert DEFAULT_PORT < port <= DEFAULT_PORT + 10
    assert answer.status_code == 200


async def test_a_port_that_was_asked_for_and_is_taken_is_an_error(place: Place) -> None:
    """One line says so, the exit code is 1, and no run was started."""
    place.add_issue("A")
    port = free_port()

    with listening(port):
        ran = await place.sortie("run", "--port", str(port))

    assert ran.code == 1
    last = ran.err.splitlines()[-1]
    assert last.startswith("sortie: ")
    assert f"port {port}" in last
    assert "Traceback" not in ran.err
    assert place.agents() == []


async def test_a_workspace_root_that_vanishes_stops_dispatch_until_it_is_back(
    place: Place, start: Start
) -> None:
    """A file in place of the directory makes the daemon not ready; it recovers by itself."""
    place.workspaces.mkdir(mode=0o700)

    async with start() as daemon:
        await daemon.ready()
        place.workspaces.rename(place.root / "aside")
        place.workspaces.write_text("in the way")
        await daemon.ready(503, saying=str(place.workspaces))
        alive = await daemon.get("/livez")
        place.add_issue("A")
        await daemon.line("poll.skipped")
        meanwhile = place.state_of("A"), daemon.lines("run.started")
        place.workspaces.unlink()
        (place.root / "aside").rename(place.workspaces)
        await daemon.ready()
        await daemon.line("issue.moved", issue="A", lifecycle="handoff")
        metrics = await daemon.metrics()

    assert alive.status_code == 200
    assert meanwhile == ("Todo", [])
    assert metrics.total("sortie_poll_cycles_total", result="skipped") >= 1


Unlock = Callable[[], None]


@pytest.fixture
def locked_root(place: Place) -> Iterator[Unlock]:
    """Make the workspace root unwritable, by its mode or, for root, by ``chattr``."""
    root = place.workspaces
    root.mkdir(mode=0o700)

    def change(flag: str, mode: int) -> bool:
        if os.geteuid() != 0:
            root.chmod(mode)
            return True
        if shutil.which("chattr") is None:
            return False
        command = ["chattr", flag, str(root)]
        return subprocess.run(command, capture_output=True, check=False).returncode == 0

    def unlock() -> None:
        change("-i", 0o700)

    if not change("+i", 0o500):
        pytest.skip("root may write anywhere, and there is no chattr +i here")
    yield unlock
    unlock()


async def test_a_workspace_root_that_cannot_be_written_stops_dispatch(
    place: Place, start: Start, locked_root: Unlock
) -> None:
    """While the directory is immutable nothing is started, and it recovers by itself."""
    async with start() as daemon:
        await daemon.ready(503, saying=str(place.workspaces))
        place.add_issue("A")
        await daemon.line("poll.skipped")
        meanwhile = place.state_of("A")
        locked_root()
        await daemon.line("issue.moved", issue="A", lifecycle="handoff")
        await daemon.ready()

    assert meanwhile == "Todo"


@pytest.mark.full
async def test_a_database_that_cannot_be_is_one_line(place: Place) -> None:
    """A directory in its place ends the start with 1 and a hint."""
    (place.root / ".sortie.db").mkdir()

    ran = await place.sortie("run", "--port", "0")

    assert ran.code == 1
    assert ran.err.splitlines()[-1].startswith("sortie: cannot open the database")
    assert "Traceback" not in ran.err


@pytest.mark.full
async def test_polls_that_can_never_be_made_end_the_wait_for_idleness(
    place: Place, start: Start
) -> None:
    """With a file in place of the root ``--exit-when-idle`` ends with 1 rather than never."""
    place.workspaces.write_text("in the way")
    place.add_issue("A")

    async with start("--exit-when-idle") as daemon:
        code = await daemon.exit_code()

    assert code == 1
    assert place.state_of("A") == "Todo"
