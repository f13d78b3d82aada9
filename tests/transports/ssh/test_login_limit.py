"""How many logins of a host begin at the same time."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
import trio
import trio.testing

from sortie.model import HostError, HostTrouble
from sortie.transports.rank import FIRST, ranked
from sortie.transports.remote import login_limit
from sortie.transports.remote.launch import Bounds
from sortie.transports.remote.login_limit import LOGINS_AT_ONCE, PLACE_BOUND, LoginLimit
from sortie.transports.remote.transport import ShellTransport
from sortie.transports.ssh.asyncio_thread import AsyncioThread
from sortie.transports.ssh.connection_pool import ConnectionPool
from tests.contract.transport.launching import Launch, everything
from tests.run_ids import own_run_id
from tests.transports.ssh.sshd import Keys, requires_sshd, sshd_running

SILENT = HostError(HostTrouble.UNREACHABLE, "it did not answer")


async def test_a_host_that_is_silent_fails_for_all_that_wait(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """Forty runs do not find out one after the other that the login hangs."""
    logins = LoginLimit("h")
    refused: list[HostError] = []

    async def log_in() -> None:
        try:
            async with logins.slot():
                await trio.sleep(5)
                logins.fail(SILENT)
                raise SILENT
        except HostError as exc:
            refused.append(exc)

    async with trio.open_nursery() as nursery:
        for _ in range(40):
            nursery.start_soon(log_in)

    assert {(exc.trouble, str(exc)) for exc in refused} == {(SILENT.trouble, str(SILENT))}
    assert (len(refused), trio.current_time()) == (40, 5)


async def test_who_waits_too_long_is_told_that_the_host_is_busy(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """And does not stand in the way of those behind."""
    logins = LoginLimit("h")

    async with trio.open_nursery() as nursery:
        for _ in range(LOGINS_AT_ONCE):
            nursery.start_soon(hold, logins, PLACE_BOUND + 10)
        await trio.testing.wait_all_tasks_blocked()
        with pytest.raises(HostError, match="max_concurrent_agents_per_host") as caught:
            async with logins.slot():
                pass
        async with logins.slot():
            pass

    assert caught.value.trouble is HostTrouble.BUSY


async def test_a_run_that_has_begun_goes_before_one_that_has_not(
    autojump_clock: trio.testing.MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Runs reach their agents one after the other, in the order of dispatch; none is given up,
    though the last one waits longer than the bound for its first login."""
    monkeypatch.setattr(login_limit, "PLACE_BOUND", 20.0)
    logins = LoginLimit("h")
    begun: list[int] = []
    under_way: list[int] = [0]

    async def run(number: int) -> None:
        for step in range(10):
            async with logins.slot():
                if step == 0:
                    begun.append(number)
                    under_way.append(under_way[-1] + 1)
                await trio.sleep(1)
            await trio.sleep(0.01)  # others get the place meanwhile
        under_way.append(under_way[-1] - 1)

    async with trio.open_nursery() as nursery:
        await fill(logins, nursery)
        for number in range(60):
            with ranked():
                nursery.start_soon(run, number)

    assert begun == list(range(60))
    assert max(under_way) <= 2 * LOGINS_AT_ONCE
    assert trio.current_time() > 30


async def test_the_rank_decides_and_not_the_arrival(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """What others wait for goes first, then runs as they were dispatched; what belongs to no run
    has the rank of its arrival, so that none that comes later overtakes it."""
    logins = LoginLimit("h")
    order: list[str] = []

    async def log_in(name: str, delay: float, at_rank: int | None = None) -> None:
        await trio.sleep(delay)
        async with logins.slot(at_rank=at_rank):
            order.append(name)

    async with trio.open_nursery() as nursery:
        await fill(logins, nursery)
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


async def fill(logins: LoginLimit, nursery: trio.Nursery) -> None:
    """Take all places for a second."""
    for _ in range(LOGINS_AT_ONCE):
        nursery.start_soon(hold, logins, 1)
    await trio.testing.wait_all_tasks_blocked()


async def hold(logins: LoginLimit, seconds: float) -> None:
    async with logins.slot():
        await trio.sleep(seconds)


@requires_sshd
@pytest.mark.skipif(shutil.which("flock") is None, reason="the login shell waits with flock")
async def test_many_at_once_begin_on_a_host_with_a_slow_login(
    keys: Keys, thread: AsyncioThread, tmp_path: Path
) -> None:
    """A login takes the host's only processor for a while: those that begin together need more than
    the time of one, and none of them is refused."""
    done: list[bytes] = []
    launch = Launch(own_run_id("a-run"), str(tmp_path))
    with sshd_running(tmp_path / "host", keys) as sshd:
        lock = tmp_path / "processor"
        (sshd.home / ".bashrc").write_text(f"exec 9>>{lock}; flock 9; sleep 0.15; exec 9>&-\n")
        connections = ConnectionPool(sshd.host, sshd.settings, thread)
        transport = ShellTransport(sshd.host, connections, bounds=Bounds(handshake=2.0))

        async def use() -> None:
            async with transport.process(launch.sh("echo done")) as process:
                done.append((await everything(process))[1])

        async with trio.open_nursery() as nursery:
            for _ in range(25):
                nursery.start_soon(use)
        await connections.aclose()

    assert done == [b"done\n"] * 25
