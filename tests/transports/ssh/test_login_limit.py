"""How many logins of a host begin at the same time."""

from __future__ import annotations

import shutil
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
import trio
import trio.testing

from sortie.model import HostError, HostTrouble, RunId
from sortie.transports.rank import FIRST, ranked
from sortie.transports.ssh.asyncio_thread import AsyncioThread
from sortie.transports.ssh.connection_pool import ConnectionPool
from sortie.transports.ssh.launch import Bounds
from sortie.transports.ssh.login_limit import START_BOUND, LoginLimit, login_slot
from sortie.transports.ssh.transport import SshTransport
from tests.contract.transport.launching import Launch, everything
from tests.transports.ssh.sshd import Keys, Sshd, requires_sshd, sshd_running

PATIENCE = 5.0
SILENT = HostError(HostTrouble.UNREACHABLE, "it did not answer")


async def begin_at_once(starts: LoginLimit, seconds: float, count: int) -> None:
    """Have so many logins begin at the same time, each of which takes so long."""

    async def log_in() -> None:
        async with login_slot(starts) as start:
            start.opened()
            await trio.sleep(min(seconds, PATIENCE))
            if seconds > PATIENCE:
                assert start.was_silent(SILENT) or starts.limit == 1
            else:
                start.succeeded(PATIENCE)

    async with trio.open_nursery() as nursery:
        for _ in range(count):
            nursery.start_soon(log_in)


async def test_quick_logins_let_more_of_them_in(autojump_clock: trio.testing.MockClock) -> None:
    """A host that keeps up is not held back for long: a hundred begin in a few rounds."""
    starts = LoginLimit("h")
    first = starts.limit

    await begin_at_once(starts, 0.1, 100)

    assert starts.limit > 4 * first
    assert trio.current_time() < 1.0


async def test_slow_logins_halve_how_many_begin(autojump_clock: trio.testing.MockClock) -> None:
    """Those that began together count once; from there on the number grows slowly."""
    starts = LoginLimit("h")
    await begin_at_once(starts, 0.1, 12)
    before = starts.limit

    await begin_at_once(starts, 0.9 * PATIENCE, before)
    halved = starts.limit
    await begin_at_once(starts, 0.1, halved)

    assert halved == before // 2
    assert starts.limit in (halved, halved + 1)


async def test_silent_ones_among_others_are_tried_again(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """They took their time from each other; only one that is alone tells of the host."""
    starts = LoginLimit("h")
    again: list[bool] = []

    async def log_in() -> None:
        async with login_slot(starts) as start:
            await trio.sleep(PATIENCE)
            again.append(start.was_silent(SILENT))

    for count in (4, 1):
        async with trio.open_nursery() as nursery:
            for _ in range(count):
                nursery.start_soon(log_in)

    assert again == [True, True, True, True, False]


async def test_a_host_that_is_silent_is_tried_once_for_all_who_wait(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """Forty runs do not find out one after the other that the login hangs."""
    starts = LoginLimit("h")
    refused: list[HostError] = []

    async def log_in() -> None:
        try:
            while True:
                async with login_slot(starts) as start:
                    await trio.sleep(PATIENCE)
                    if not start.was_silent(SILENT):
                        raise SILENT
        except HostError as exc:
            refused.append(exc)

    async with trio.open_nursery() as nursery:
        for _ in range(40):
            nursery.start_soon(log_in)

    assert len(refused) == 40
    assert {exc.trouble for exc in refused} == {HostTrouble.UNREACHABLE}
    assert trio.current_time() <= 5 * PATIENCE


async def test_who_waits_too_long_is_told_that_the_host_is_busy(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """And does not stand in the way of those behind."""
    starts = LoginLimit("h")

    async with trio.open_nursery() as nursery:
        for _ in range(starts.limit):
            nursery.start_soon(hold, starts, START_BOUND + 10)
        await trio.testing.wait_all_tasks_blocked()
        with pytest.raises(HostError, match="max_concurrent_agents_per_host") as caught:
            await starts.begin()
        (await starts.begin()).leave()

    assert caught.value.trouble is HostTrouble.BUSY


async def test_the_first_to_come_is_the_first_to_begin(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """Also where one of those who wait is cancelled."""
    starts = LoginLimit("h")
    begun: list[int] = []

    async def log_in(number: int) -> None:
        await trio.sleep(number / 1000)
        async with login_slot(starts):
            begun.append(number)
            await trio.sleep(1)

    async with trio.open_nursery() as nursery:
        for number in range(12):
            nursery.start_soon(log_in, number)
        with trio.move_on_after(0.5):
            await starts.begin()

    assert begun == list(range(12))


async def test_a_run_that_has_begun_goes_before_one_that_has_not(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """Runs reach their agents one after the other, in the order of dispatch; none is given up,
    though the last one waits longer than START_BOUND for its first login."""
    starts = LoginLimit("h")
    begun: list[int] = []
    under_way: list[int] = [0]

    async def run(number: int) -> None:
        for step in range(10):
            async with login_slot(starts):
                if step == 0:
                    begun.append(number)
                    under_way.append(under_way[-1] + 1)
                await trio.sleep(1)
            await trio.sleep(0.01)  # others get the place meanwhile
        under_way.append(under_way[-1] - 1)

    async with trio.open_nursery() as nursery:
        await fill(starts, nursery)
        for number in range(60):
            with ranked():
                nursery.start_soon(run, number)

    assert begun == list(range(60))
    assert max(under_way) <= 2 * starts.limit
    assert trio.current_time() > START_BOUND


async def test_the_rank_decides_and_not_the_arrival(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """What others wait for goes first, then runs as they were dispatched; what belongs to no run
    has the rank of its arrival, so that none that comes later overtakes it."""
    starts = LoginLimit("h")
    order: list[str] = []

    async def log_in(name: str, delay: float, at_rank: int | None = None) -> None:
        await trio.sleep(delay)
        async with login_slot(starts, at_rank=at_rank):
            order.append(name)

    async with trio.open_nursery() as nursery:
        await fill(starts, nursery)
        with ranked():
            nursery.start_soon(log_in, "first run", 0.4)
        with ranked():
            nursery.start_soon(log_in, "second run", 0.2)
        nursery.start_soon(log_in, "no run", 0.1)
        nursery.start_soon(log_in, "lock", 0.5, FIRST)
        await trio.sleep(0.3)
        with ranked():
            nursery.start_soon(log_in, "third run", 0)

    assert order == ["lock", "first run", "second run", "no run", "third run"]


async def fill(starts: LoginLimit, nursery: trio.Nursery) -> None:
    """Take all places for a second."""
    for _ in range(starts.limit):
        nursery.start_soon(hold, starts, 1)
    await trio.testing.wait_all_tasks_blocked()


async def hold(starts: LoginLimit, seconds: float) -> None:
    async with login_slot(starts):
        await trio.sleep(seconds)


@pytest.fixture
def slow_host(tmp_path: Path, keys: Keys) -> Iterator[Sshd]:
    """Give a host with one processor, which a login takes for a tenth of a second."""
    with sshd_running(tmp_path / "host", keys) as sshd:
        lock = tmp_path / "processor"
        (sshd.home / ".bashrc").write_text(f"exec 9>>{lock}; flock 9; sleep 0.1; exec 9>&-\n")
        yield sshd


@pytest.fixture
async def connections(slow_host: Sshd, thread: AsyncioThread) -> AsyncIterator[ConnectionPool]:
    made = ConnectionPool(slow_host.host, slow_host.settings, thread)
    yield made
    await made.aclose()


@requires_sshd
@pytest.mark.skipif(shutil.which("flock") is None, reason="the login shell waits with flock")
async def test_many_at_once_begin_on_a_host_with_a_slow_login(
    slow_host: Sshd, connections: ConnectionPool, tmp_path: Path
) -> None:
    """All together need three times the patience for one; none of them is refused."""
    transport = SshTransport(slow_host.host, connections, bounds=Bounds(handshake=1.5))
    launch = Launch(RunId("a-run"), str(tmp_path))
    done: list[bytes] = []

    async def use() -> None:
        assert await transport.files.contained(str(tmp_path), slow_host.home.as_posix())
        async with transport.process(launch.sh("echo done")) as process:
            done.append((await everything(process))[1])

    async with trio.open_nursery() as nursery:
        for _ in range(25):
            nursery.start_soon(use)

    assert done == [b"done\n"] * 25
