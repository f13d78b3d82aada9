"""What this machine's transport does when it runs out of descriptors or threads."""

from __future__ import annotations

import os
import sys
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest
import trio

from sortie.model import ProcessesLeft, ProgramNotFound, RunId, TransportError
from sortie.resources import Shortages, keep_account, shortage_behind
from sortie.transports import Command, Exit, reaper
from sortie.transports.local import LocalTransport, become_subreaper
from tests.resources.scarcity import descriptors_left, no_threads, own_reserve
from tests.transports.leftovers import foreign_children, holders, is_alive

pytestmark = pytest.mark.skipif(
    sys.platform != "linux", reason="adoption of orphans and /proc are Linux's"
)


@pytest.fixture
def transport() -> LocalTransport:
    assert become_subreaper()
    return LocalTransport(os.environ["PATH"])


@pytest.fixture
def run_id() -> Iterator[RunId]:
    """Give a run id, and check that nothing of the run and no zombie is left."""
    cookie = RunId(str(uuid.uuid4()))
    yield cookie
    assert holders(cookie) == []
    assert foreign_children() == []


def command(run_id: str, *argv: str) -> Command:
    env = {"PATH": os.environ["PATH"], "SORTIE_RUN_ID": run_id}
    return Command(argv=argv, cwd="/", env=env, grace=0.5)


async def test_a_block_is_not_left_while_nobody_can_tell_who_lives(
    transport: LocalTransport, run_id: RunId
) -> None:
    """Without descriptors a process cannot be looked at: its run goes on, and says why."""
    account = Shortages()
    keep_account(account)
    started, over = trio.Event(), trio.Event()
    pids: list[int] = []

    async def run() -> None:
        with scope:
            async with transport.process(command(run_id, "sleep", "60")) as process:
                pids.append(process.identity.pid)
                started.set()
                await trio.sleep_forever()
        over.set()

    scope = trio.CancelScope()
    with trio.fail_after(60):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(run)
            await started.wait()
            with descriptors_left(0):
                scope.cancel()
                while not account.unknown:
                    await trio.sleep(0.01)
                meanwhile = (over.is_set(), os.path.exists(f"/proc/{pids[0]}"), account.shortages)

    assert meanwhile[:2] == (False, True)
    assert "limit of open files" in meanwhile[2][0]
    assert account.unknown == ()
    assert over.is_set()
    assert not is_alive(pids[0])


async def test_what_is_kept_back_ends_a_process(transport: LocalTransport, run_id: RunId) -> None:
    """With a reserve, a process is ended though nobody else can open anything."""
    with trio.fail_after(60), own_reserve():
        async with transport.process(command(run_id, "sleep", "60")) as process:
            with descriptors_left(1):
                held = os.open(os.devnull, os.O_RDONLY)
                exit_ = await process.end()
                os.close(held)
                alive = os.path.exists(f"/proc/{process.identity.pid}")

    assert exit_ == Exit(signal=15, by_us=True)
    assert alive  # as a zombie, which keeps its number until the block is left


async def test_a_program_is_started_once_there_are_descriptors(
    transport: LocalTransport, run_id: RunId
) -> None:
    """A shortage that passes is not even seen by who wants a program."""
    account = Shortages()
    keep_account(account)
    exits: list[Exit] = []

    async def run() -> None:
        async with transport.process(command(run_id, "true")) as process:
            exits.append(await process.wait())

    with trio.fail_after(60):
        async with trio.open_nursery() as nursery:
            with descriptors_left(3):
                nursery.start_soon(run)
                while not account.shortages:
                    await trio.sleep(0.01)
                before = list(exits)

    assert before == []
    assert exits == [Exit(status=0)]


@pytest.mark.parametrize("left", range(14))
async def test_no_process_is_lost_however_few_descriptors_are_left(
    transport: LocalTransport, run_id: RunId, left: int
) -> None:
    """Whichever step of a start finds none, the process is known and ended with its block."""
    account = Shortages()
    keep_account(account)
    ends: list[Exit] = []

    async def run() -> None:
        async with transport.process(command(run_id, "sleep", "60")) as process:
            ends.append(await process.end())

    with trio.fail_after(60):
        async with trio.open_nursery() as nursery:
            with descriptors_left(left):
                nursery.start_soon(run)
                while not (account.shortages or ends):
                    await trio.sleep(0.01)

    assert ends == [Exit(signal=15, by_us=True)]


async def test_a_program_is_started_once_there_are_threads(
    transport: LocalTransport, run_id: RunId, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same holds for threads, which starting a program takes."""
    exits: list[Exit] = []

    async def run() -> None:
        async with transport.process(command(run_id, "true")) as process:
            exits.append(await process.wait())

    with no_threads(monkeypatch) as limit, trio.fail_after(60):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(run)
            while not limit.refused > 2:
                await trio.sleep(0.01)
            limit.reached = False

    assert exits == [Exit(status=0)]


async def test_a_directory_that_cannot_be_looked_at_is_not_said_to_be_elsewhere(
    transport: LocalTransport, tmp_path: Path
) -> None:
    """Whether it lies in its root is unknown then."""
    (tmp_path / "a").mkdir()

    with descriptors_left(0), pytest.raises(TransportError, match="limit of open files") as caught:
        await transport.files.contained(str(tmp_path), str(tmp_path / "a"))

    assert shortage_behind(caught.value) is not None
    assert await transport.files.contained(str(tmp_path), str(tmp_path / "a"))


async def test_occupants_that_cannot_be_looked_at_are_waited_for(
    transport: LocalTransport, tmp_path: Path
) -> None:
    """A directory is not said to be empty because nobody could look."""
    account = Shortages()
    keep_account(account)
    found: list[list[int]] = []

    async def look() -> None:
        found.append(await transport.occupied(os.getcwd()))

    with trio.fail_after(60):
        async with trio.open_nursery() as nursery:
            with descriptors_left(0):
                nursery.start_soon(look)
                while not account.unknown:
                    await trio.sleep(0.01)
                before = list(found)

    assert before == []
    assert os.getpid() in found[0]


async def test_a_program_that_is_missing_is_still_missing(transport: LocalTransport) -> None:
    """What no patience can mend is told at once."""
    with pytest.raises(ProgramNotFound):
        async with transport.process(command("x", "no-such-program")):
            pass


async def test_what_a_sweep_could_not_see_is_not_said_to_be_left(
    run_id: RunId, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No run is blamed for processes that nobody could look at; the sweep is to be made again."""
    transport = LocalTransport(os.environ["PATH"])
    expected = pytest.raises(TransportError, match="limit of open files")

    with monkeypatch.context() as patched, descriptors_left(0), expected as caught:
        patched.setattr(reaper, "SWEEP_BOUND", 0.5)
        await transport.sweep([run_id], grace=0.0)

    assert not isinstance(caught.value, ProcessesLeft)
    assert shortage_behind(caught.value) is not None
    assert await transport.sweep([run_id], grace=0.0) == 0
