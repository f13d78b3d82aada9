"""The notifications of a daemon: its senders, its troubles, its digests."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
import trio
from trio.testing import MockClock

from sortie import facts
from sortie.config.notifications import NotificationTarget, named
from sortie.config.settings import BudgetSettings, Settings
from sortie.daemon.daily_digest import DIGEST_PERIOD, DigestParts, keep_digests
from sortie.daemon.notification_service import NotificationService, TargetStanding
from sortie.facts import Fact
from sortie.model import SortieError, StoreError
from sortie.model.notifications import DAEMON_TROUBLE, DAILY_DIGEST
from sortie.notifications.channel import SendFailed, TargetChannel
from sortie.notifications.troubles import FAILED_POLLS, QUIET_SECONDS, trouble_of
from sortie.orchestrator import Orchestrator
from sortie.scheduler.records import RecordNotification
from sortie.workflow.loader import Workflow
from sortie.workflow.prompts import Prompt
from tests.notifications.rig import NOON, FakeChannel, Outage, notice
from tests.store.inline import MemoryStore
from tests.store.records import A, begin, end
from tests.worker.rig import settings_of

HOOK = {"events": "all", "webhook": "https://example.com/hook", "secret": "whsec_" + "A" * 32}
ZONE = "Europe/Berlin"


def settings(*targets: dict[str, Any]) -> Settings:
    made = named([NotificationTarget.model_validate(HOOK | keys) for keys in targets])
    budget = BudgetSettings(timezone=ZONE)
    return settings_of().model_copy(update={"notifications": made, "budget": budget})


class Rig:
    """A service whose channels are fakes, by the names of their targets."""

    def __init__(self, *targets: dict[str, Any]) -> None:
        self.store = MemoryStore()
        self.facts: list[Fact] = []
        self.channels: dict[str, FakeChannel] = {}
        self.opened: list[str] = []
        self.unusable: set[str] = set()
        self.began = trio.current_time()
        workflow = Workflow(
            path=Path("/team/WORKFLOW.md"), settings=settings(*targets), prompt=Prompt(source="")
        )
        self.service = NotificationService(
            workflow, self.store, self.publish, self._open, self.wall
        )

    def wall(self) -> float:
        return NOON + trio.current_time() - self.began

    def publish(self, fact: Fact) -> None:
        self.facts.append(fact)
        self.service.sink(fact)

    @asynccontextmanager
    async def _open(self, target: NotificationTarget) -> AsyncIterator[TargetChannel]:
        name = target.name or ""
        if name in self.unusable:
            raise SortieError("apprise does not understand the address")
        self.opened.append(name)
        yield self.channels.setdefault(name, FakeChannel())

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self.service.run)
            await trio.sleep(2)
            yield
            nursery.cancel_scope.cancel()

    async def tell(self, key: str, *names: str) -> None:
        record = RecordNotification(notification=notice(key), targets=names)
        await self.store.commit([record], self.wall())
        self.publish(facts.NotificationRecorded(about="held", targets=names))

    def keys(self, name: str) -> list[str]:
        return self.channels[name].keys if name in self.channels else []


async def test_a_target_that_is_down_delays_no_other(autojump_clock: MockClock) -> None:
    """And its standing says what waits, since when, and why."""
    rig = Rig({"name": "down"}, {"name": "up"})
    rig.channels["down"] = FakeChannel(Outage(1e9))

    async with rig.running():
        for number in range(3):
            await rig.tell(str(number), "down", "up")
        await trio.sleep(5)
        standing = rig.service.standing()

    assert rig.keys("up") == ["0", "1", "2"]
    assert rig.keys("down") == []
    assert standing == (
        TargetStanding(target="down", waiting=3, oldest=NOON + 2, error="it is down"),
        TargetStanding(target="up"),
    )


async def test_other_settings_are_obeyed_at_once(autojump_clock: MockClock) -> None:
    """A target that stays the same is not touched, one that is corrected goes on."""
    rig = Rig({"name": "same"}, {"name": "wrong"})
    rig.unusable.add("wrong")

    async with rig.running():
        await rig.tell("a", "same", "wrong")
        await trio.sleep(5)
        before = rig.service.standing()
        rig.unusable.clear()
        rig.service.use(settings({"name": "same"}, {"name": "wrong", "give_up_ms": 5_000_000}))
        await trio.sleep(5)

    assert before[1].error == "apprise does not understand the address"
    assert (rig.keys("same"), rig.keys("wrong")) == (["a"], ["a"])
    assert rig.opened == ["same", "wrong"]


async def test_what_waits_for_no_target_is_given_up(autojump_clock: MockClock) -> None:
    """After a day, so that a name may come back."""
    rig = Rig({"name": "here"})
    await rig.tell("a", "gone")

    async with rig.running():
        await trio.sleep(20 * 3600)
        waiting = rig.service.standing()
        await trio.sleep(6 * 3600)
        dead = rig.service.standing()

    assert waiting[1] == TargetStanding(target="gone", waiting=1, oldest=NOON)
    assert (dead[1].waiting, dead[1].dead) == (0, 1)


async def test_what_was_given_up_is_sent_again(autojump_clock: MockClock) -> None:
    """By its number, or all; the sender does not wait for anything else."""
    rig = Rig({"name": "hook"})

    def refuse(_message: object) -> None:
        raise SendFailed("it answered 404", final=True)

    rig.channels["hook"] = FakeChannel(refuse)
    async with rig.running():
        await rig.tell("a", "hook")
        await trio.sleep(5)
        rig.channels["hook"].answer = lambda _message: None
        done = await rig.service.revive(1)
        nothing = await rig.service.revive(None)
        await trio.sleep(5)

    assert (done, nothing) == (1, 0)
    assert rig.keys("hook") == ["a"]


async def test_troubles_are_told_once_an_hour(autojump_clock: MockClock) -> None:
    """One that the disk is the reason of comes when the disk can be written."""
    rig = Rig({"name": "hook"})

    async with rig.running():
        rig.store.failing = StoreError("disk full")
        for _ in range(3):
            rig.publish(facts.StoreFailed(error="disk full"))
        await trio.sleep(30)
        meanwhile = rig.keys("hook")
        rig.store.failing = None
        await trio.sleep(30)
        once = list(rig.keys("hook"))
        await trio.sleep(QUIET_SECONDS)
        rig.publish(facts.StoreFailed(error="disk full"))
        await trio.sleep(30)

    assert (len(meanwhile), len(once), len(rig.keys("hook"))) == (0, 1, 2)
    assert once[0].startswith(f"{DAEMON_TROUBLE}:")


async def test_a_crash_is_on_record_before_the_end(autojump_clock: MockClock) -> None:
    """The next daemon tells of it."""
    rig = Rig({"name": "hook"})
    async with rig.running():
        rig.publish(facts.DaemonCrashed(traceback="Traceback\nValueError: oh <!here>"))

    (waiting,) = await rig.service.outbox.open()
    (one,) = await rig.service.outbox.turn("hook", (), 9, None, rig.wall())
    assert waiting.count == 1
    assert one.notification.text.startswith("ValueError: oh \u2039!here\u203a\n")


@pytest.mark.parametrize(
    ("fact", "subject"),
    [
        (facts.StateRestored(interrupted=2, waiting=0, held=0, paused=False), "restart"),
        (facts.StateRestored(interrupted=0, waiting=9, held=9, paused=False), None),
        (facts.ShortageBegan(resource="memory", error="no more"), "shortage memory"),
        (facts.WorkflowReloaded(errors=("W:1:1: a", "W:2:1: b")), "workflow"),
        (facts.WorkflowReloaded(), None),
        (facts.OrphansLeft(where="local", error="pid 7"), "orphans local"),
        (facts.HostGivenUp(host="box"), "host box"),
        (facts.AdapterCrashed(where="poll", traceback="t"), "adapter poll"),
        (facts.PollCompleted(result="error", seconds=1.0, error="late"), None),
        (facts.HostBack(host="box"), None),
    ],
)
def test_which_facts_are_troubles(fact: Fact, subject: str | None) -> None:
    """What a person has to know, and nothing that passes by itself."""
    found = trouble_of(fact)

    assert (None if found is None else found[0]) == subject


async def test_a_tracker_that_fails_again_and_again_is_a_trouble(
    autojump_clock: MockClock,
) -> None:
    """A single failure, or one between successes, is none."""
    rig = Rig({"name": "hook"})
    failed = facts.PollCompleted(result="error", seconds=1.0, error="late")

    async with rig.running():
        for _ in range(FAILED_POLLS - 1):
            rig.publish(failed)
        rig.publish(facts.PollCompleted(result="success", seconds=1.0, candidates=0))
        for _ in range(FAILED_POLLS - 1):
            rig.publish(failed)
        await trio.sleep(5)
        before = rig.keys("hook")
        rig.publish(failed)
        await trio.sleep(5)

    assert (len(before), len(rig.keys("hook"))) == (0, 1)


async def test_each_day_is_summed_up_once(autojump_clock: MockClock) -> None:
    """At midnight of the zone, with the runs that ended on it; also over a restart."""
    rig = Rig({"name": "hook"})
    snapshot = SimpleNamespace(held=[1], waiting=[])
    orchestrator = SimpleNamespace(
        settings=settings({}),
        snapshot=lambda: snapshot,
    )
    await rig.store.commit([begin("r", A)], NOON)
    await rig.store.commit([end("r")], NOON + 60)
    parts = DigestParts(
        rig.service, cast("Orchestrator", orchestrator), rig.store, rig.publish, rig.wall
    )

    async with rig.running():
        for _ in range(2):
            async with trio.open_nursery() as nursery:
                nursery.start_soon(keep_digests, parts)
                await trio.sleep(16 * 3600)  # past midnight in Berlin, and not the next one
                nursery.cancel_scope.cancel()
        await trio.sleep(DIGEST_PERIOD)

    days = [key.removeprefix(f"{DAILY_DIGEST}:") for key in rig.keys("hook")]
    assert days == ["2027-01-14", "2027-01-15"]
    told = await rig.service.outbox.is_known(f"{DAILY_DIGEST}:2027-01-15")
    assert told
