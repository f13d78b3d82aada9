"""The notifications of a workflow while its daemon works: recorded, sent, counted, forgotten."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from datetime import UTC, datetime
from uuid import uuid4

import trio
from msgspec import Struct

from sortie.config.notifications import NotificationTarget
from sortie.config.settings import Settings
from sortie.facts import Fact, NotificationFailed, NotificationRecorded, NotificationsGivenUp
from sortie.model import SortieError, StoreError
from sortie.notifications.channel import OpenChannel, TargetChannel
from sortie.notifications.maker import NotificationMaker
from sortie.notifications.sender import LONGEST_PAUSE, TargetSender
from sortie.notifications.troubles import TroubleSink
from sortie.resources.lease import LeaseLost
from sortie.store.database_store import DatabaseStore
from sortie.store.outbox import OpenNotifications, Outbox
from sortie.telemetry import Publish
from sortie.telemetry.log import WORKFLOW
from sortie.web.notifications import NotificationTargetView
from sortie.workflow.loader import Workflow

SENT_KEPT, DEAD_KEPT = 7 * 86_400.0, 30 * 86_400.0
"""Seconds for which a notification is kept that was sent, so that it is not sent again, and one
that is dead."""

LOST_TARGET_KEPT = 86_400.0
"""Seconds for which notifications wait for a target that the settings do not name any more."""

_FORGET_PERIOD, _FORGOTTEN_AT_ONCE = 3600.0, 500
_COUNT_PAUSE = 1.0  # seconds between two counts of what waits


def opened_channel(
    target: NotificationTarget, workflow: str, wall: Callable[[], float]
) -> AbstractAsyncContextManager[TargetChannel]:
    """Return the channel of a target, to be entered; its library is loaded only now.

    Entering raises SortieError for an address that cannot be used.
    """
    if target.webhook is not None:
        from sortie.notifications.webhook import open_webhook

        return open_webhook(target, workflow, wall)
    from sortie.notifications.chat import open_chat

    return open_chat(target)


class TargetStanding(Struct, frozen=True, kw_only=True):
    """How many notifications wait for a target, the oldest since when in Unix seconds; how many
    are dead. ``error`` is why it could not be told last, None where it could."""

    target: str
    waiting: int = 0
    oldest: float | None = None
    dead: int = 0
    error: str | None = None


class NotificationService:
    """What a daemon has for notifications. ``sink`` takes all facts."""

    def __init__(
        self,
        workflow: Workflow,
        store: DatabaseStore,
        publish: Publish,
        open_channel: OpenChannel | None = None,
        wall: Callable[[], float] = time.time,
    ) -> None:
        self.maker = NotificationMaker(workflow.settings, lambda: uuid4().hex)
        self.outbox = Outbox(store)
        self._name = WORKFLOW.get() or workflow.path.parent.name
        self._targets: Mapping[str, NotificationTarget] = {}
        self._publish = publish
        self._wall = wall
        self._open = open_channel or self._opened
        self._troubles = TroubleSink(self.maker, store, publish, wall)
        self._senders: dict[str, tuple[NotificationTarget, trio.CancelScope]] = {}
        self._wakes: dict[str, Callable[[], None]] = {}
        self._open_counts: Sequence[OpenNotifications] = ()
        self._errors: dict[str, str] = {}
        self._uncounted = trio.Event()
        self._nursery: trio.Nursery | None = None
        self.use(workflow.settings)

    @property
    def is_on(self) -> bool:
        """Whether the settings name any target."""
        return bool(self._targets)

    def use(self, settings: Settings) -> None:
        """Go by other settings; targets that are the same go on as they are."""
        self._targets = {one.name or "": one for one in settings.notifications}
        self.maker.use(settings)
        if self._nursery is not None:
            self._begin_senders(self._nursery)

    def sink(self, fact: Fact) -> None:
        """Send what is on record now, and note troubles of the daemon."""
        if isinstance(fact, NotificationRecorded):
            self.wake(fact.targets)
        elif isinstance(fact, NotificationFailed | NotificationsGivenUp):
            self._errors[fact.target] = fact.error
        self._troubles(fact)

    def wake(self, targets: Sequence[str] | None = None) -> None:
        """Have senders look for what waits, those of all targets where none are named."""
        for name in self._wakes if targets is None else targets:
            if wake := self._wakes.get(name):
                wake()
        self._uncounted.set()

    async def run(self) -> None:
        """Send until cancelled."""
        async with trio.open_nursery() as nursery:
            self._nursery = nursery
            nursery.start_soon(self._troubles.run)
            nursery.start_soon(self._count)
            nursery.start_soon(self._forget)
            self._begin_senders(nursery)

    def standing(self) -> tuple[TargetStanding, ...]:
        """Return how things stood a moment ago, also of targets that are no longer named."""
        found = {(one.target, str(one.state)): one for one in self._open_counts}
        names = dict.fromkeys([*self._targets, *(target for target, _ in found)])
        return tuple(self._standing(name, found) for name in names)

    def _standing(
        self, name: str, found: Mapping[tuple[str, str], OpenNotifications]
    ) -> TargetStanding:
        waiting, dead = found.get((name, "waiting")), found.get((name, "dead"))
        return TargetStanding(
            target=name,
            waiting=0 if waiting is None else waiting.count,
            oldest=None if waiting is None else waiting.oldest,
            dead=0 if dead is None else dead.count,
            error=self._errors.get(name),
        )

    def views(self) -> tuple[NotificationTargetView, ...]:
        """Return what the state shows of it."""
        return tuple(
            NotificationTargetView(
                target=one.target,
                waiting=one.waiting,
                oldest_at=None if one.oldest is None else datetime.fromtimestamp(one.oldest, UTC),
                dead=one.dead,
                error=one.error,
            )
            for one in self.standing()
        )

    async def revive(self, number: int | None) -> int | str:
        """Let a dead notification, or all, be sent again; return how many, or why one cannot be.
        Raises StoreError."""
        done = await self.outbox.revive(number, self._wall())
        self.wake()
        return done

    def _begin_senders(self, nursery: trio.Nursery) -> None:
        for name, (target, scope) in list(self._senders.items()):
            if self._targets.get(name) != target:
                scope.cancel()
                del self._senders[name]
        for name, target in self._targets.items():
            if name not in self._senders:
                scope = trio.CancelScope()
                self._senders[name] = target, scope
                nursery.start_soon(self._send, target, scope)
        self._uncounted.set()

    async def _send(self, target: NotificationTarget, scope: trio.CancelScope) -> None:
        name = target.name or ""
        with scope:
            while True:
                try:
                    async with self._open(target) as channel:
                        await self._send_through(target, channel)
                except LeaseLost:
                    raise
                except SortieError as exc:  # what doctor tells, too; a reload mends it
                    failed = NotificationFailed(target=name, error=str(exc), delay=LONGEST_PAUSE)
                    self._publish(failed)
                    await trio.sleep(LONGEST_PAUSE)

    async def _send_through(self, target: NotificationTarget, channel: TargetChannel) -> None:
        name = target.name or ""

        def changed() -> None:
            self._uncounted.set()

        def publish(fact: Fact) -> None:
            if not isinstance(fact, NotificationFailed | NotificationsGivenUp):
                self._errors.pop(name, None)
            self._publish(fact)

        sender = TargetSender(
            target, channel, self.outbox, publish, self._wall, random.random, changed
        )
        self._wakes[name] = sender.wake
        await sender.run()

    def _opened(self, target: NotificationTarget) -> AbstractAsyncContextManager[TargetChannel]:
        return opened_channel(target, self._name, self._wall)

    async def _count(self) -> None:
        """Keep the counts, so that a look at them waits for nothing."""
        while True:
            self._uncounted = trio.Event()
            try:
                self._open_counts = await self.outbox.open()
            except StoreError:
                self._uncounted.set()
            await trio.sleep(_COUNT_PAUSE)
            await self._uncounted.wait()

    async def _forget(self) -> None:
        """Forget what is old, and give up what waits for no target, now and every hour."""
        while True:
            try:
                await self._forget_once()
            except LeaseLost:
                raise
            except StoreError:  # the journal tells of it
                pass
            self._uncounted.set()
            await trio.sleep(_FORGET_PERIOD)

    async def _forget_once(self) -> None:
        now = self._wall()
        for one in await self.outbox.open():
            if one.state == "waiting" and one.target not in self._targets:
                error = "the settings name no such target"
                before = now - LOST_TARGET_KEPT
                count = await self.outbox.give_up(one.target, before, error, now)
                if count:
                    told = NotificationsGivenUp(target=one.target, count=count, error=error)
                    self._publish(told)
        limit = _FORGOTTEN_AT_ONCE
        while await self.outbox.forget(now - SENT_KEPT, now - DEAD_KEPT, limit) == limit:
            await trio.sleep(_COUNT_PAUSE)
