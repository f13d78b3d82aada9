"""Notifications of troubles of the daemon itself, which no decision of the scheduler tells of.

They are made of facts, and committed by a task of their own. One that cannot be, since the disk is
the trouble, waits for that.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

import trio

from sortie import facts
from sortie.facts import Fact
from sortie.model import StoreError
from sortie.model.notifications import DAEMON_TROUBLE
from sortie.model.numbers import counted
from sortie.notifications.maker import NotificationMaker
from sortie.notifications.texts import harmless
from sortie.scheduler.records import RecordNotification
from sortie.store import Store
from sortie.telemetry import Publish

QUIET_SECONDS = 3600.0
"""Seconds for which a trouble that comes again is not told of again."""

FAILED_POLLS = 10
"""Polls in a row that fail before the tracker is a trouble of the daemon."""

_WAITING = 100  # what waits for the disk: there are few kinds, each once in QUIET_SECONDS
_PAUSE = 1.0
_LAST_COMMIT = 2.0  # seconds for the word that the daemon has crashed

Trouble = tuple[str, str, str]
"""What it is about, by which it is known when it comes again; a title and a text."""


class TroubleSink:
    """Takes facts, and has notifications of troubles committed."""

    def __init__(
        self,
        maker: NotificationMaker,
        store: Store,
        publish: Publish,
        wall: Callable[[], float],
    ) -> None:
        self._maker = maker
        self._store = store
        self._publish = publish
        self._wall = wall
        self._told_at: dict[str, float] = {}
        self._polls = 0
        self._found_in, self._found = trio.open_memory_channel[RecordNotification](_WAITING)

    def __call__(self, fact: Fact) -> None:
        """Note a trouble that a fact tells of."""
        if isinstance(fact, facts.PollCompleted):
            self._polls = self._polls + 1 if fact.result == "error" else 0
        if (trouble := trouble_of(fact, self._polls)) is None:
            return
        subject, title, text = trouble
        now = trio.current_time()
        if now - self._told_at.get(subject, float("-inf")) < QUIET_SECONDS:
            return
        record = self._maker.alone(DAEMON_TROUBLE, (title, text))
        if record is not None:
            self._told_at[subject] = now
            with suppress(trio.WouldBlock):
                self._found_in.send_nowait(record)

    async def run(self) -> None:
        """Commit what is found until cancelled, and then what is left."""
        pending: RecordNotification | None = None
        try:
            while True:
                pending = await self._found.receive()
                await self._commit(pending)
                pending = None
        finally:
            with trio.move_on_after(_LAST_COMMIT, shield=True):
                if pending is not None:
                    await self._commit(pending)
                while self._found.statistics().current_buffer_used:
                    await self._commit(self._found.receive_nowait())

    async def _commit(self, record: RecordNotification) -> None:
        while True:
            try:
                await self._store.commit([record], self._wall())
            except StoreError:
                await trio.sleep(_PAUSE)
            else:
                told = record.notification.event
                self._publish(facts.NotificationRecorded(about=told, targets=record.targets))
                return


def trouble_of(fact: Fact, failed_polls: int = 0) -> Trouble | None:
    """Return the trouble that a fact tells of, None for all else. ``failed_polls`` are those in a
    row up to now."""
    match fact:
        case facts.DaemonCrashed(traceback=traceback):
            last = traceback.strip().rpartition("\n")[2]
            return "crash", "Sortie crashed", f"{harmless(last)}\nThe log has the traceback."
        case facts.StateRestored(interrupted=count) if count:
            text = (
                f"The daemon before this one ended without being asked to, with"
                f" {counted(count, 'run')} under way. What was under way is begun again."
                "\nThe log of that time may say why; was the machine restarted?"
            )
            return "restart", "Sortie was restarted", text
        case facts.StoreFailed(error=error):
            text = (
                f"{harmless(error)}\nNo run was started meanwhile. See that it does not come again."
            )
            return "store", "Sortie could not write its records", text
        case facts.ShortageBegan(resource=resource, error=error):
            text = f"{harmless(error)}\nRuns are started one at a time until there is enough."
            return f"shortage {resource}", f"Sortie is short of {resource}", text
        case facts.WorkflowReloaded(errors=(first, *more)):
            others = f" and {counted(len(more), 'further error')}" if more else ""
            text = (
                f"{harmless(first)}{others}\nThe last good settings stay in force;"
                " sortie validate lists all errors."
            )
            return "workflow", "The workflow file is not valid", text
        case facts.OrphansLeft(where=where, error=error):
            text = (
                f"{harmless(error)}\nThe issues of these runs are held; end the processes by hand."
            )
            return f"orphans {where}", "Processes of earlier runs could not be ended", text
        case facts.HostGivenUp(host=host):
            text = (
                f"Its issues begin anew on other hosts.\nsortie doctor --host {host} may say why."
            )
            return f"host {host}", f"The host {harmless(host)} is given up", text
        case facts.AdapterCrashed(where=where):
            text = f"The error is in {harmless(where)}.\nThe log has the traceback."
            return f"adapter {where}", "A part of Sortie failed", text
        case facts.PollCompleted(error=str(error)) if failed_polls >= FAILED_POLLS:
            text = (
                f"{harmless(error)}\nNo new issue is started until it answers; runs go on."
                " sortie doctor may say more."
            )
            return "tracker", f"The tracker does not answer: {failed_polls} polls failed", text
        case _:
            return None
