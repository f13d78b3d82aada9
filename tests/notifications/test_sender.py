"""What a sender does with what waits for its target."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager

import pytest
import trio
from trio.testing import MockClock

from sortie.config.notifications import NotificationTarget
from sortie.facts import Fact, NotificationFailed, NotificationsGivenUp, NotificationsSent
from sortie.model import StoreError
from sortie.model.notifications import DAEMON_TROUBLE, HELD
from sortie.notifications.channel import SendFailed
from sortie.notifications.sender import FIRST_PAUSE, LONGEST_PAUSE, TargetSender
from sortie.scheduler.records import RecordNotification
from sortie.store.outbox import Outbox, Outgoing
from tests.notifications.rig import NOON, FakeChannel, Outage, notice, target
from tests.store.inline import MemoryStore

HOOK = target(webhook="https://example.com/hook")
CHAT = target(bundle_ms=60_000)


class Rig:
    """A store, and senders of it on virtual time."""

    def __init__(self) -> None:
        self.store = MemoryStore()
        self.outbox = Outbox(self.store)
        self.facts: list[Fact] = []
        self.began = trio.current_time()

    def wall(self) -> float:
        return NOON + trio.current_time() - self.began

    async def record(self, *keys: str, event: str = HELD, to: NotificationTarget = HOOK) -> None:
        for key in keys:
            told = RecordNotification(notification=notice(key, event), targets=(to.name or "",))
            await self.store.commit([told], self.wall())

    @asynccontextmanager
    async def sending(
        self, channel: FakeChannel, to: NotificationTarget = HOOK
    ) -> AsyncIterator[TargetSender]:
        sender = TargetSender(to, channel, self.outbox, self.facts.append, self.wall, lambda: 0.5)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(sender.run)
            yield sender
            nursery.cancel_scope.cancel()

    async def open(self) -> dict[str, int]:
        return {one.state: one.count for one in await self.outbox.open()}


async def test_what_waits_is_sent_in_order_and_once(autojump_clock: MockClock) -> None:
    """Also what comes while others are sent, and what comes when nothing waits."""
    rig = Rig()
    channel = FakeChannel()
    await rig.record(*(str(number) for number in range(25)))

    async with rig.sending(channel) as sender:
        await trio.sleep(1)
        await rig.record("late")
        sender.wake()
        await trio.sleep(1)

    assert channel.keys == [*(str(number) for number in range(25)), "late"]
    assert channel.repeated == set()
    assert await rig.open() == {}


async def test_an_outage_delays_and_keeps_the_order(autojump_clock: MockClock) -> None:
    """Pauses double up to the longest; nothing overtakes, and nothing counts as repeated that
    cannot have arrived."""
    rig = Rig()
    channel = FakeChannel(Outage(3 * 3600.0))
    await rig.record("a", "b", "c")

    async with rig.sending(channel):
        await trio.sleep(4 * 3600)

    assert channel.keys == ["a", "b", "c"]
    assert channel.repeated == set()
    waits = [
        later - earlier for earlier, later in zip(channel.asked, channel.asked[1:], strict=False)
    ]
    assert waits[:3] == [FIRST_PAUSE, 2 * FIRST_PAUSE, 4 * FIRST_PAUSE]
    assert max(waits) == LONGEST_PAUSE
    failed = [fact for fact in rig.facts if isinstance(fact, NotificationFailed)]
    assert failed[0] == NotificationFailed(target="webhook", error="it is down", delay=FIRST_PAUSE)


async def test_a_lost_answer_makes_a_repetition_that_says_so(autojump_clock: MockClock) -> None:
    """Only of the message whose answer was lost, not of those that were not tried."""
    rig = Rig()
    channel = FakeChannel(Outage(1.0, lost=True))
    await rig.record("a", "b")

    async with rig.sending(channel):
        await trio.sleep(60)

    assert channel.keys == ["a", "b"]
    assert channel.repeated == {"a"}
    sent = [fact for fact in rig.facts if isinstance(fact, NotificationsSent)]
    assert [fact.repeated for fact in sent] == [1, 0]


async def test_what_was_in_hand_at_a_kill_is_repeated(
    autojump_clock: MockClock,
) -> None:
    """A process that ends at any moment leaves the mark before it sends."""
    rig = Rig()
    await rig.record("a", "b")
    await rig.outbox.turn("webhook", (), 10, None, rig.wall())  # and then it was killed
    channel = FakeChannel()

    async with rig.sending(channel):
        await trio.sleep(1)

    assert channel.keys == ["a", "b"]
    assert channel.repeated == {"a", "b"}


async def test_an_end_in_good_order_repeats_nothing(autojump_clock: MockClock) -> None:
    """What was sent is on record although the sender is cancelled before the next commit."""
    rig = Rig()
    channel = FakeChannel()
    taken = trio.Event()
    channel.answer = lambda _message: taken.set()
    await rig.record("a", "b")

    async with rig.sending(channel):
        await taken.wait()
    again = FakeChannel()
    async with rig.sending(again):
        await trio.sleep(1)

    assert set(channel.keys).isdisjoint(again.keys)
    assert {*channel.keys, *again.keys} == {"a", "b"}


async def test_a_refusal_is_final_and_of_one_alone(autojump_clock: MockClock) -> None:
    """What a target refuses for good is dead with the reason, and the next goes on."""
    rig = Rig()

    def refuse_b(message: Sequence[Outgoing]) -> None:
        if message[0].notification.key == "b":
            raise SendFailed("it answered 404", final=True)

    channel = FakeChannel(refuse_b)
    await rig.record("a", "b", "c")

    async with rig.sending(channel):
        await trio.sleep(60)

    assert channel.keys == ["a", "c"]
    assert await rig.open() == {"dead": 1}
    assert NotificationsGivenUp(target="webhook", count=1, error="it answered 404") in rig.facts


async def test_what_is_too_old_is_given_up(autojump_clock: MockClock) -> None:
    """All of it at once when a try fails; what is younger goes on waiting."""
    rig = Rig()
    to = target(webhook="https://example.com/hook", give_up_ms=3_600_000)
    channel = FakeChannel(Outage(5400.0))
    await rig.record("a", "b", to=to)

    async with rig.sending(channel, to):
        await trio.sleep(1800)
        await rig.record("young", to=to)
        await trio.sleep(7200)

    assert channel.keys == ["young"]
    assert await rig.open() == {"dead": 2}


async def test_a_target_may_ask_to_be_left_alone(autojump_clock: MockClock) -> None:
    """For longer than the pauses are, but not for ever."""
    rig = Rig()
    answers: list[float | None] = [600.0, 1e9]

    def ask(_message: Sequence[Outgoing]) -> None:
        if answers:
            raise SendFailed("it answered 429", retry_after=answers.pop(0))

    channel = FakeChannel(ask)
    await rig.record("a")

    async with rig.sending(channel):
        await trio.sleep(2 * 3600)

    first, second, third = channel.asked
    assert (second - first, third - second) == (600.0, 3600.0)


async def test_what_comes_within_a_time_is_one_message(autojump_clock: MockClock) -> None:
    """The first waits so long for others; what comes later is the next message."""
    rig = Rig()
    channel = FakeChannel(most=20, batch=20)
    await rig.record("a", to=CHAT)

    async with rig.sending(channel, CHAT) as sender:
        await trio.sleep(30)
        await rig.record("b", to=CHAT)
        sender.wake()
        await trio.sleep(29)
        before = list(channel.arrived)
        await trio.sleep(2)
        await rig.record("c", to=CHAT)
        sender.wake()
        await trio.sleep(61)

    assert before == []
    assert channel.arrived == [("a", "b"), ("c",)]


async def test_quiet_hours_keep_all_but_troubles(autojump_clock: MockClock) -> None:
    """What was kept is sent when they are over, in its order."""
    rig = Rig()
    quiet = {"from": "22:00", "to": "09:00", "timezone": "UTC"}
    to = target(webhook="https://example.com/hook", quiet_hours=quiet)
    channel = FakeChannel()
    await rig.record("a", to=to)
    await rig.record("trouble", event=DAEMON_TROUBLE, to=to)

    async with rig.sending(channel, to):
        await trio.sleep(3500)
        at_night = list(channel.keys)
        await trio.sleep(200)

    assert at_night == ["trouble"]
    assert channel.keys == ["trouble", "a"]


async def test_a_disk_that_fails_loses_and_repeats_nothing(autojump_clock: MockClock) -> None:
    """What was sent is written once that is possible, and nothing is sent meanwhile."""
    rig = Rig()
    channel = FakeChannel(batch=1)

    def fail(_message: Sequence[Outgoing]) -> None:
        rig.store.failing = StoreError("no space left")

    channel.answer = fail
    await rig.record("a", "b")

    async with rig.sending(channel):
        await trio.sleep(60)
        assert channel.keys == ["a"]
        channel.answer = lambda _message: None
        rig.store.failing = None
        await trio.sleep(5)

    assert channel.keys == ["a", "b"]
    assert channel.repeated == set()


@pytest.mark.parametrize("limit", [1, 3, 10])
async def test_no_moment_of_a_kill_loses_anything(autojump_clock: MockClock, limit: int) -> None:
    """Whenever a sender is cut without a last commit, all arrives, and repetitions say so."""
    for cut_at in range(1, 12):
        rig = Rig()
        channel, count = FakeChannel(batch=limit), 0
        await rig.record("a", "b", "c", "d", "e")

        def cut(message: Sequence[Outgoing], at: int = cut_at, rig: Rig = rig) -> None:
            nonlocal count
            count += 1
            if count == at:
                rig.store.failing = StoreError("killed")  # nothing is written from now on

        channel.answer = cut
        async with rig.sending(channel):
            await trio.sleep(10)
        rig.store.failing = None
        first = list(channel.keys)
        async with rig.sending(channel):
            await trio.sleep(10)

        assert set(channel.keys) == {"a", "b", "c", "d", "e"}
        twice = {key for key in first if channel.keys.count(key) > 1}
        assert twice <= channel.repeated


def test_jitter_spreads_tries() -> None:
    """The numbers of jitter lead to pauses from half to one and a half of what is meant."""
    made: list[float] = []

    async def main(jitter: Callable[[], float]) -> None:
        rig = Rig()
        channel = FakeChannel(Outage(FIRST_PAUSE / 4))
        await rig.record("a")
        to = HOOK
        sender = TargetSender(to, channel, rig.outbox, rig.facts.append, rig.wall, jitter)
        with trio.move_on_after(10):
            await sender.run()
        made.append(channel.asked[1] - channel.asked[0])

    for value in (0.0, 1.0):
        clock = MockClock(autojump_threshold=0)
        trio.run(main, lambda value=value: value, clock=clock)

    assert made == [FIRST_PAUSE * 0.5, FIRST_PAUSE * 1.5]
