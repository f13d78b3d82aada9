"""The account that is kept of a remote host."""

from __future__ import annotations

import pytest
import trio
from trio.testing import MockClock

from sortie.model import HostError, HostTrouble, ProcessesLeft, RunId, TransportError
from sortie.transports import Command
from sortie.transports.host_health import HostHealth, MonitoredTransport
from tests.transports.fake import Does, FakeTransport

RUN = RunId("run-1")
DOWN = HostError(HostTrouble.UNREACHABLE, "refused")
EVICTED = HostError(HostTrouble.DISRUPTED, "pod a was evicted")
LOST = HostError(HostTrouble.DROPPED, "the link was lost")


class Told:
    """Takes what is told."""

    def __init__(self) -> None:
        self.all: list[tuple[str, object]] = []
        self.watch = HostHealth(
            troubled=lambda _host, error: self.all.append(("troubled", str(error))),
            reached=lambda _host: self.all.append(("reached", None)),
            reaped=lambda _host, count: self.all.append(("reaped", count)),
        )


@pytest.fixture
def inner() -> FakeTransport:
    return FakeTransport({"work": Does(seconds=1)}, directories=["/w"])


def command() -> Command:
    return Command(argv=("sh", "-c", "work"), cwd="/w", env={"SORTIE_RUN_ID": RUN})


async def test_trouble_is_told_and_its_end_once(
    autojump_clock: MockClock, inner: FakeTransport
) -> None:
    """Each failure is told; of the uses that succeed only the first, and the first after one."""
    told = Told()
    watched = MonitoredTransport(inner, told.watch)

    await watched.files.contained("/", "/w")
    await watched.files.contained("/", "/w")
    inner.faults["contained"] = DOWN
    for _ in range(2):
        with pytest.raises(HostError):
            await watched.files.contained("/", "/w")
    inner.faults.clear()
    await watched.files.contained("/", "/w")

    assert told.all == [
        ("reached", None),
        ("troubled", "refused"),
        ("troubled", "refused"),
        ("reached", None),
    ]


async def test_a_lost_pod_is_no_trouble_of_the_host(
    autojump_clock: MockClock, inner: FakeTransport
) -> None:
    """Nobody is told of it, and nothing is swept before the next use."""
    told = Told()
    watched = MonitoredTransport(inner, told.watch)
    with pytest.raises(HostError):
        async with watched.process(command()):
            raise EVICTED
    inner.faults["contained"] = EVICTED
    with pytest.raises(HostError):
        await watched.files.contained("/", "/w")

    await watched.files.make_directory("/w", "a")

    assert inner.swept == []
    assert told.all == [("reached", None)]


async def test_a_run_whose_link_was_lost_is_looked_for_before_the_next_use(
    autojump_clock: MockClock, inner: FakeTransport
) -> None:
    """Whoever comes next waits for the search; after that nothing is owed."""
    told = Told()
    watched = MonitoredTransport(inner, told.watch)
    with pytest.raises(HostError):
        async with watched.process(command()):
            raise LOST

    await watched.files.make_directory("/w", "a")
    await watched.files.make_directory("/w", "b")

    assert inner.swept == [{RUN}]
    assert ("reaped", 0) in told.all


async def test_what_was_ended_is_told_once(autojump_clock: MockClock, inner: FakeTransport) -> None:
    """A sweep answers with its number, which its caller counts; what was owed is told instead."""
    told = Told()
    watched = MonitoredTransport(inner, told.watch)

    async def end_three(*_args: object, **_options: object) -> int:
        await trio.lowlevel.checkpoint()
        return 3

    setattr(inner, "sweep", end_three)  # noqa: B010
    asked = await watched.sweep([RUN], grace=1.0)
    before = list(told.all)
    with pytest.raises(HostError):
        async with watched.process(command()):
            raise LOST
    await watched.files.make_directory("/w", "a")
    await watched.files.make_directory("/w", "b")

    assert asked == 3
    assert before == [("reached", None)]
    assert [one for one in told.all if one[0] == "reaped"] == [("reaped", 3)]


async def test_a_host_that_stays_away_goes_on_owing(
    autojump_clock: MockClock, inner: FakeTransport
) -> None:
    """A search that fails keeps the use from happening, and is made again with the next."""
    told = Told()
    watched = MonitoredTransport(inner, told.watch)
    inner.faults["sweep"] = DOWN
    with pytest.raises(HostError):
        await watched.sweep([RUN], grace=1.0)
    with pytest.raises(HostError):
        await watched.files.make_directory("/w", "a")
    made_before = "/w/a" in inner.files.directories
    inner.faults.clear()

    async with watched.process(command()) as process, trio.open_nursery() as nursery:
        nursery.start_soon(process.wait)

    assert not made_before
    assert inner.swept == [{RUN}]


async def test_a_start_that_was_broken_off_and_left_somebody_is_looked_for(
    autojump_clock: MockClock, inner: FakeTransport
) -> None:
    """The program may have run before anybody could say that it has started."""
    watched = MonitoredTransport(inner, Told().watch)
    inner.faults["process"] = ProcessesLeft("could not end process 7", pids=frozenset({7}))
    with pytest.raises(ProcessesLeft):
        async with watched.process(command()):
            pass

    await watched.files.make_directory("/w", "a")

    assert inner.swept == [{RUN}]


async def test_what_stays_on_a_host_is_the_hosts_trouble(
    autojump_clock: MockClock, inner: FakeTransport
) -> None:
    """It is rested, and asked again, for as long as somebody of an earlier run is there."""
    told = Told()
    watched = MonitoredTransport(inner, told.watch, {RUN})
    inner.faults["sweep"] = ProcessesLeft("could not end 77", pids=frozenset({77}))

    for _ in range(2):
        with pytest.raises(HostError, match="77") as caught:
            await watched.files.make_directory("/w", "a")
        assert caught.value.trouble is HostTrouble.OCCUPIED
    inner.faults.clear()
    await watched.files.make_directory("/w", "a")

    assert [name for name, _ in told.all] == ["troubled", "troubled", "reached", "reaped"]


async def test_a_host_that_shows_no_processes_owes_nothing_for_ever(
    autojump_clock: MockClock, inner: FakeTransport
) -> None:
    """Without /proc nobody can be looked for, and the lease has ended what was there."""
    watched = MonitoredTransport(inner, Told().watch, {RUN})
    inner.faults["sweep"] = TransportError("it has no /proc")

    await watched.files.make_directory("/w", "a")
    inner.faults.clear()
    await watched.files.make_directory("/w", "b")

    assert inner.swept == []


async def test_those_who_wait_for_a_search_fail_with_it(
    autojump_clock: MockClock, inner: FakeTransport
) -> None:
    """A host that takes long to be given up is not tried by one after the other."""
    watched = MonitoredTransport(inner, Told().watch, {RUN})
    inner.faults["sweep"], inner.pauses["sweep"] = DOWN, 30.0
    began, failed = trio.current_time(), []

    async def use(name: str) -> None:
        with pytest.raises(HostError, match="refused"):
            await watched.files.make_directory("/w", name)
        failed.append(name)

    async with trio.open_nursery() as nursery:
        for name in ("a", "b", "c"):
            nursery.start_soon(use, name)

    assert sorted(failed) == ["a", "b", "c"]
    assert trio.current_time() - began == 30.0


async def test_nobody_uses_the_host_beside_a_search(
    autojump_clock: MockClock, inner: FakeTransport
) -> None:
    """Those who come while earlier runs are looked for wait for the same search."""
    watched = MonitoredTransport(inner, Told().watch, {RUN})
    inner.pauses["sweep"] = 30.0
    used_at: list[float] = []
    began = trio.current_time()

    async def use(name: str, after: float) -> None:
        await trio.sleep(after)
        await watched.files.make_directory("/w", name)
        used_at.append(trio.current_time() - began)

    async with trio.open_nursery() as nursery:
        for name, after in (("a", 0.0), ("b", 0.0), ("c", 10.0)):
            nursery.start_soon(use, name, after)

    assert used_at == [30.0] * 3
    assert inner.swept == [{RUN}]
