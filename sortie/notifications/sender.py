"""Sends what waits for one target, in order, as long as it takes.

Rule 1: before a message is sent its notifications are marked as sent perhaps, on disk. A process
that is killed meanwhile leaves that mark, and the next try says that it may be a repetition.
Rule 2: while a target cannot be told, nothing behind is tried: what is about an issue arrives in
its order, and a target that is down delays only itself.
Rule 3: what a target refuses for good is dead, and so is what could not be told for too long.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress

import trio

from sortie.config.notifications import NotificationTarget
from sortie.facts import NotificationFailed, NotificationsGivenUp, NotificationsSent
from sortie.model import StoreError
from sortie.model.notifications import DAEMON_TROUBLE
from sortie.notifications.channel import SendFailed, TargetChannel
from sortie.notifications.quiet import is_quiet, quiet_until
from sortie.resources.lease import LeaseLost
from sortie.store.outbox import NotificationState, Outbox, Outgoing, TryResult
from sortie.telemetry import Publish

FIRST_PAUSE, LONGEST_PAUSE = 2.0, 300.0
"""Seconds between two tries; each pause is twice as long as the one before."""

LONGEST_WISH = 3600.0
"""Seconds that a target may ask to be left alone."""

_REFUSED_PAUSE = 1.0  # after a refusal, so that a wrong address is not asked a thousand times
_STORE_PAUSE = 1.0
_LAST_COMMIT = 2.0  # seconds for what is known of messages when the daemon ends
_CLOCK_LOOK = 60.0  # the clock may be set while quiet hours are waited for


class TargetSender:
    """The sender of one target. ``jitter`` returns numbers from 0 to 1; ``changed`` is called when
    other notifications wait or are dead than before."""

    def __init__(
        self,
        target: NotificationTarget,
        channel: TargetChannel,
        outbox: Outbox,
        publish: Publish,
        wall: Callable[[], float],
        jitter: Callable[[], float],
        changed: Callable[[], object] = lambda: None,
    ) -> None:
        self._target, self._name = target, target.name or ""
        self._channel = channel
        self._outbox = outbox
        self._publish = publish
        self._wall = wall
        self._jitter = jitter
        self._changed = changed
        self._woken = trio.Event()
        self._failures = 0
        self._results: Sequence[TryResult] = ()

    def wake(self) -> None:
        """Look for what waits now."""
        self._woken.set()
        self._woken = trio.Event()

    async def run(self) -> None:
        """Send until cancelled; what is known of the last messages is written then."""
        try:
            while True:
                try:
                    await self._round()
                except LeaseLost:
                    raise
                except StoreError:  # the journal tells of it
                    await trio.sleep(_STORE_PAUSE)
        finally:
            with (
                trio.move_on_after(_LAST_COMMIT, shield=True),
                suppress(StoreError),
            ):
                await self._settle(0, None)

    async def _round(self) -> None:
        woken = self._woken
        now = self._wall()
        hours = self._target.quiet_hours
        event = DAEMON_TROUBLE if is_quiet(hours, now) else None
        if self._bundle:
            await self._settle(0, None)
        if not self._results:
            since = await self._outbox.first_waiting(self._name, event)
            if since is None:
                until = trio.current_time() + self._look_again(now)
                with trio.move_on_at(until):
                    await woken.wait()
                return
            if (wait := since + self._bundle - self._wall()) > 0:
                await trio.sleep(min(wait, self._bundle))
        batch = await self._settle(self._channel.batch, event)
        if batch:
            pause = await self._send(batch)
            self._changed()
            await trio.sleep(pause)

    @property
    def _bundle(self) -> float:
        return 0.0 if self._target.webhook is not None else self._target.bundle

    def _look_again(self, now: float) -> float:
        """Return for how many seconds nothing can come to be due without a wake."""
        hours = self._target.quiet_hours
        if hours is None or not is_quiet(hours, now):
            return float("inf")
        return min(_CLOCK_LOOK, max(1.0, quiet_until(hours, now) - now))

    async def _settle(self, limit: int, event: str | None) -> tuple[Outgoing, ...]:
        """Write what came of the last tries, and take what is to be tried now."""
        if not self._results and not limit:
            return ()
        batch = await self._outbox.turn(self._name, self._results, limit, event, self._wall())
        if self._results:
            self._results = ()
            self._changed()
        return batch

    async def _send(self, batch: Sequence[Outgoing]) -> float:
        """Send a batch, and return the seconds to wait before the next."""
        # What is not overwritten below was not tried, and stays as it was.
        results = {one.id: _untried(one) for one in batch}
        self._results = tuple(results.values())
        for message in self._channel.messages(batch):
            begun = trio.current_time()
            for one in message:
                results[one.id] = _tried(one, unsure=True)
            self._results = tuple(results.values())
            try:
                await self._channel.send(message)
            except SendFailed as exc:
                for one in message:
                    unsure = one.unsure or exc.unsure
                    state: NotificationState = "dead" if exc.final else "waiting"
                    results[one.id] = _tried(one, unsure=unsure, state=state, error=str(exc))
                self._results = tuple(results.values())
                if exc.final:
                    self._given_up(len(message), str(exc))
                    return _REFUSED_PAUSE
                return await self._failed(exc)
            for one in message:
                results[one.id] = _tried(one, unsure=one.unsure, state="sent")
            self._results = tuple(results.values())
            self._failures = 0
            self._publish(
                NotificationsSent(
                    target=self._name,
                    count=len(message),
                    repeated=sum(one.unsure for one in message),
                    seconds=trio.current_time() - begun,
                )
            )
        return 0.0

    async def _failed(self, failure: SendFailed) -> float:
        """Give up what is too old; return the seconds to wait before the next try."""
        before = self._wall() - self._target.give_up
        await self._settle(0, None)
        given_up = await self._outbox.give_up(self._name, before, str(failure), self._wall())
        if given_up:
            self._given_up(given_up, str(failure))
        pause = min(FIRST_PAUSE * 2.0 ** min(self._failures, 30), LONGEST_PAUSE)
        self._failures += 1
        pause *= 0.5 + self._jitter()
        if failure.retry_after is not None:
            pause = max(pause, min(failure.retry_after, LONGEST_WISH))
        self._publish(NotificationFailed(target=self._name, error=str(failure), delay=pause))
        return pause

    def _given_up(self, count: int, error: str) -> None:
        self._publish(NotificationsGivenUp(target=self._name, count=count, error=error))


def _untried(outgoing: Outgoing) -> TryResult:
    return TryResult(id=outgoing.id, state="waiting", tries=outgoing.tries, unsure=outgoing.unsure)


def _tried(
    outgoing: Outgoing,
    *,
    unsure: bool,
    state: NotificationState = "waiting",
    error: str | None = None,
) -> TryResult:
    tries = outgoing.tries + 1
    return TryResult(id=outgoing.id, state=state, tries=tries, unsure=unsure, error=error)
