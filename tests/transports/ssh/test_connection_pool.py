"""The connections to one host: shared, dialled one at a time, left without a trace."""

from __future__ import annotations

import random
import socket
import threading
from collections.abc import AsyncIterator, Callable

import psutil
import pytest
import trio
import trio.testing

from sortie.model import HostError, HostTrouble, TransportError
from sortie.transports.ssh.asyncio_thread import AsyncioThread, open_asyncio_thread
from sortie.transports.ssh.channel import SshChannel
from sortie.transports.ssh.connection_pool import ConnectionPool
from tests.transports.ssh.raw import open_raw, output, running
from tests.transports.ssh.sshd import Keys, Sshd, requires_sshd, until

pytestmark = requires_sshd
# Ends when its lease does, as everything that is started on a host has to.
HELD = "echo up; exec cat >/dev/null"


@pytest.fixture
async def connections(sshd: Sshd, thread: AsyncioThread) -> AsyncIterator[ConnectionPool]:
    """Give the connections to a running host."""
    made = ConnectionPool(sshd.host, sshd.settings, thread)
    yield made
    await made.aclose()


@pytest.fixture
def links() -> Callable[[], int]:
    """Give what counts the connections of this process that a test has opened: one that failed may
    have left some."""
    before = _open_links()
    return lambda: len(_open_links() - before)


def _open_links() -> set[object]:
    """Return the connections of this process by their own ends."""
    return {link.laddr for link in psutil.Process().net_connections("tcp") if link.raddr}


def restart_with(sshd: Sshd, **options: str | int) -> None:
    """Start the host anew with other options."""
    sshd.stop()
    sshd.options.update(options)
    sshd.start()


async def said(channel: SshChannel) -> bytes:
    """Read a channel's stdout to its end."""
    return b"".join([chunk async for number, chunk in output(channel) if number == 1])


async def run(connections: ConnectionPool, command: str) -> bytes:
    """Run a command to its end; return what it says."""
    async with running(connections, command) as channel:
        return await said(channel)


async def hold(
    connections: ConnectionPool, until_set: trio.Event, held: Callable[[], None]
) -> None:
    """Hold a session open."""
    async with running(connections, HELD) as channel:
        assert await anext(output(channel)) == (1, b"up\n")
        held()
        await until_set.wait()


async def hold_many(connections: ConnectionPool, number: int) -> None:
    """Hold so many sessions at the same time, and let all of them go."""
    let_go, count = trio.Event(), 0

    def one_more() -> None:
        nonlocal count
        count += 1
        if count == number:
            let_go.set()

    async with trio.open_nursery() as nursery:
        for _ in range(number):
            nursery.start_soon(hold, connections, let_go, one_more)


async def test_a_connection_is_made_on_first_use_and_kept(
    connections: ConnectionPool, sshd: Sshd
) -> None:
    """Nothing is dialled before it is needed; one connection carries all that fits on it."""
    assert connections.links == sshd.links() == 0

    for _ in range(3):
        assert await run(connections, "echo x") == b"x\n"
    await hold_many(connections, 7)  # of ten: a busy host may count the three still

    assert connections.links == sshd.links() == 1


async def test_more_connections_are_made_where_a_session_is_refused(
    connections: ConnectionPool, sshd: Sshd
) -> None:
    """A host's limit of sessions is found out, and dials come one at a time.

    The host drops whoever dials while another one is not logged in yet.
    """
    restart_with(sshd, MaxSessions=2, MaxStartups="1:100:1")

    await hold_many(connections, 9)

    assert connections.links == sshd.links() == 5
    await until(lambda: connections.sessions == 0)


async def test_who_finds_all_full_waits(
    connections: ConnectionPool, sshd: Sshd, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where no more connections may be made, a freed session goes to who waits."""
    monkeypatch.setattr("sortie.transports.ssh.connection_pool._MOST_CONNECTIONS", 1)
    restart_with(sshd, MaxSessions=1)
    answers = []

    async def ask(number: int) -> None:
        answers.append(await run(connections, f"echo {number}"))

    async with trio.open_nursery() as nursery:
        for number in range(5):
            nursery.start_soon(ask, number)

    assert sorted(answers) == [b"0\n", b"1\n", b"2\n", b"3\n", b"4\n"]
    assert connections.links == 1


async def test_a_closed_session_whose_command_lives_still_counts(
    connections: ConnectionPool, sshd: Sshd
) -> None:
    """sshd keeps the place of an aborted session until its command has ended; so do we."""
    pids: list[int] = []
    async with running(connections, "trap '' HUP PIPE; echo $$; exec sleep 1000") as channel:
        pids.append(int((await anext(output(channel)))[1]))

    assert await run(connections, "echo x") == b"x\n"
    await until(lambda: connections.sessions == 1)
    psutil.Process(pids[0]).kill()
    await until(lambda: connections.sessions == 0)


async def test_a_host_that_runs_nothing_is_told(connections: ConnectionPool, sshd: Sshd) -> None:
    """A host that refuses every session is an error, not a reason to dial for ever."""
    restart_with(sshd, MaxSessions=0)

    with pytest.raises(HostError, match="MaxSessions") as caught:
        await open_raw(connections, "true")

    assert caught.value.trouble is HostTrouble.UNREACHABLE
    assert connections.sessions == 0


async def test_a_dropped_connection_is_replaced_on_the_next_use(
    connections: ConnectionPool, sshd: Sshd
) -> None:
    """Nothing hangs behind a dead link, and a new one is dialled at once."""
    assert await run(connections, "echo x") == b"x\n"

    sshd.kill_links()
    assert await run(connections, "echo y") == b"y\n"
    sshd.crash()
    with pytest.raises(HostError) as caught:
        await run(connections, "echo no")
    sshd.start()
    assert await run(connections, "echo z") == b"z\n"

    assert caught.value.trouble is HostTrouble.UNREACHABLE
    assert connections.links == 1


async def test_a_host_that_stops_to_answer_is_given_up(
    connections: ConnectionPool, sshd: Sshd, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A link that is open and silent is found dead, with all commands on it."""
    monkeypatch.setattr("sortie.transports.ssh.connection._KEEPALIVE", 1.5)

    async with running(connections, "exec cat") as channel:
        sshd.freeze()
        await channel.over.wait()
        sshd.thaw()

    assert channel.lost is not None
    assert channel.lost.trouble is HostTrouble.DROPPED
    assert "has not answered" in str(channel.lost)
    assert await run(connections, "echo x") == b"x\n"


async def test_a_failed_dial_is_told_to_all_who_waited_for_it(
    keys: Keys, thread: AsyncioThread
) -> None:
    """Ten who want a host that is down cost one dial, not ten, one after the other."""
    failures: list[HostError] = []
    accepted = 0
    go_on = threading.Event()
    with socket.create_server(("127.0.0.1", 0)) as server:
        connections = ConnectionPool(f"127.0.0.1:{server.getsockname()[1]}", keys.settings, thread)

        def serve() -> None:
            nonlocal accepted
            while True:
                try:
                    link, _ = server.accept()
                except OSError:
                    return
                accepted += 1
                go_on.wait()
                link.close()

        async def want() -> None:
            try:
                await open_raw(connections, "true")
            except HostError as exc:
                failures.append(exc)

        server_thread = threading.Thread(target=serve)
        server_thread.start()
        async with trio.open_nursery() as nursery:
            for _ in range(10):
                nursery.start_soon(want)
            await until(lambda: accepted == 1)
            await trio.testing.wait_all_tasks_blocked()
            go_on.set()
        told = accepted
        await want()  # who asks later dials anew
        server.shutdown(socket.SHUT_RDWR)
    await trio.to_thread.run_sync(server_thread.join)

    assert told == 1
    assert accepted == 2
    assert len(failures) == 11
    assert len({id(failure) for failure in failures}) == 11
    assert {failure.trouble for failure in failures} == {HostTrouble.UNREACHABLE}


async def test_a_failed_further_dial_does_no_harm_where_others_work(
    connections: ConnectionPool, sshd: Sshd
) -> None:
    """Who cannot get a connection of its own waits for a place on one that works."""
    restart_with(sshd, MaxSessions=1)
    let_go, up = trio.Event(), trio.Event()
    answers = []

    async def ask() -> None:
        answers.append(await run(connections, "echo x"))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(hold, connections, let_go, up.set)
        await up.wait()
        sshd.stop_listening()
        nursery.start_soon(ask)
        await until(lambda: connections._dial_failure is not None)
        let_go.set()

    assert answers == [b"x\n"]


async def test_cancelled_openings_leave_nothing(connections: ConnectionPool, sshd: Sshd) -> None:
    """Whenever an opening is cancelled, no session, no command and no count of one is left."""
    chance = random.Random(7)
    opened = 0

    async def try_it(patience: float) -> None:
        nonlocal opened
        with trio.move_on_after(patience):
            async with running(connections, "exec cat"):
                opened += 1

    await run(connections, "true")
    for _ in range(8):
        async with trio.open_nursery() as nursery:
            for _ in range(8):
                nursery.start_soon(try_it, chance.uniform(0.0, 0.02))

    await until(lambda: connections.sessions == 0)
    await until(lambda: sshd.running() == [])
    assert await run(connections, "echo x") == b"x\n"


async def test_cancelled_dials_leave_nothing(
    sshd: Sshd, thread: AsyncioThread, links: Callable[[], int]
) -> None:
    """Whenever a dial is cancelled, no connection is left, and the next dial works."""
    chance = random.Random(3)
    connections = ConnectionPool(sshd.host, sshd.settings, thread)

    for _ in range(20):
        with trio.move_on_after(chance.uniform(0.0, 0.05)):
            await open_raw(connections, "true")
            await connections.aclose()
            connections = ConnectionPool(sshd.host, sshd.settings, thread)
        assert links() == connections.links
    assert await run(connections, "echo x") == b"x\n"
    await connections.aclose()

    assert links() == 0


async def test_closing_ends_all_and_refuses_more(
    connections: ConnectionPool, sshd: Sshd, links: Callable[[], int]
) -> None:
    """After ``aclose`` nothing is open, commands under way have lost their lease, none starts."""
    channel = await open_raw(connections, "exec cat")

    await connections.aclose()

    assert connections.links == 0
    assert links() == 0
    await channel.over.wait()
    with pytest.raises(TransportError):
        await open_raw(connections, "true")
    await until(lambda: sshd.running() == [])


async def test_closing_is_bounded_where_the_host_is_silent(
    connections: ConnectionPool,
    sshd: Sshd,
    links: Callable[[], int],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A frozen host does not hold the end of the daemon up."""
    monkeypatch.setattr("sortie.transports.ssh.connection._GOODBYE_BOUND", 0.1)
    await run(connections, "true")

    sshd.freeze()
    await connections.aclose()

    assert links() == 0
    sshd.thaw()


async def test_the_end_of_the_bridge_closes_what_is_open(
    sshd: Sshd, links: Callable[[], int]
) -> None:
    """Commands lose their lease when the asyncio thread ends, whoever forgot to close what."""
    async with open_asyncio_thread() as thread:
        connections = ConnectionPool(sshd.host, sshd.settings, thread)
        channel = await open_raw(connections, "exec cat")
        await until(lambda: sshd.running() != [])

    await channel.over.wait()
    assert links() == 0
    await until(lambda: sshd.running() == [])


async def test_spare_connections_are_closed_after_a_while(
    connections: ConnectionPool, sshd: Sshd, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a burst needed does not stay for good; the first connection does."""
    monkeypatch.setattr("sortie.transports.ssh.connection_pool._IDLE_FOR", 0.0)
    restart_with(sshd, MaxSessions=1)
    await hold_many(connections, 3)
    await until(lambda: connections.sessions == 0)

    await run(connections, "true")

    assert connections.links == 1
    await until(lambda: sshd.links() == 1)


async def test_a_host_that_is_wanted_no_more_is_hung_up_on(
    connections: ConnectionPool, sshd: Sshd, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Once nothing of ours runs there; it can be used all the same."""
    monkeypatch.setattr("sortie.transports.ssh.connection_pool._UNWANTED_FOR", 0.0)
    async with running(connections, "exec cat"):
        connections.set_wanted(False)
        while_used = connections.links
    await until(lambda: connections.sessions == 0)

    connections.set_wanted(False)
    afterwards = connections.links
    await until(lambda: sshd.links() == 0)
    await run(connections, "true")

    assert (while_used, afterwards) == (1, 0)


class Stress:
    """Many runs of different kinds over a host with its usual limits."""

    def __init__(self, connections: ConnectionPool, seed: int) -> None:
        self.done: dict[str, int] = {}
        self._connections = connections
        self._chance = random.Random(seed)

    async def __call__(self, runs: int, at_once: int) -> None:
        limiter = trio.CapacityLimiter(at_once)
        kinds = (self._plain, self._cancelled, self._flood, self._cut, self._status)
        async with trio.open_nursery() as nursery:
            for number in range(runs):
                await limiter.acquire_on_behalf_of(number)
                nursery.start_soon(self._one, kinds[number % len(kinds)], number, limiter)

    async def _one(
        self, kind: Callable[[int], object], number: int, limiter: trio.CapacityLimiter
    ) -> None:
        try:
            await kind(number)  # type: ignore[misc]
            name = kind.__name__
            self.done[name] = self.done.get(name, 0) + 1
        finally:
            limiter.release_on_behalf_of(number)

    async def _plain(self, number: int) -> None:
        async with running(self._connections, "exec cat") as channel:
            channel.write(b"%d\n" % number)
            channel.write_eof()
            assert await said(channel) == b"%d\n" % number
        assert channel.exit_status == 0

    async def _cancelled(self, number: int) -> None:
        with trio.move_on_after(self._chance.uniform(0.0, 0.5)):
            async with running(self._connections, "exec cat"):
                await trio.sleep_forever()

    async def _flood(self, number: int) -> None:
        async with running(self._connections, "head -c 2000000 /dev/zero") as channel:
            assert len(await said(channel)) == 2000000
        assert channel.exit_status == 0

    async def _cut(self, number: int) -> None:
        async with running(self._connections, "yes") as channel:
            await anext(output(channel))

    async def _status(self, number: int) -> None:
        async with running(self._connections, f"exit {number % 100}") as channel:
            await said(channel)
        assert channel.exit_status == number % 100


@pytest.mark.parametrize(
    ("runs", "at_once"),
    [(50, 25), pytest.param(400, 60, marks=[pytest.mark.full, pytest.mark.timeout(300)])],
)
async def test_many_mixed_runs_lose_and_leave_nothing(
    connections: ConnectionPool, sshd: Sshd, runs: int, at_once: int
) -> None:
    """Every run has its own answer, over sshd's own limits; no session and no process is left."""
    stress = Stress(connections, seed=runs)

    await stress(runs, at_once)

    assert sum(stress.done.values()) == runs
    assert set(stress.done.values()) == {runs // 5}
    await until(lambda: connections.sessions == 0)
    await until(lambda: sshd.running() == [])
    assert connections.links <= at_once // 10 + 4
