"""How the daemon ends: signals, idleness, deadlines and the exit code."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Collection
from typing import Protocol

import trio

from sortie.daemon.stop_deadline import LAST_SWEEP, StopDeadline
from sortie.facts import Fact, PollCompleted
from sortie.model import RunId, TransportError
from sortie.model.issues import natural_key
from sortie.orchestrator import Orchestrator
from sortie.scheduler import Snapshot
from sortie.telemetry import Publish, facts
from sortie.telemetry.log.structlog_alone import structlog

EXIT_OK = 0
EXIT_FAILURE = 1
EXIT_IDLE_BUT_LEFT = 3
EXIT_CUT_SHORT = 130

CUT_SECONDS = 1.0
"""Seconds that a second signal leaves, besides those of the last sweep."""

RECOVERY_SECONDS = 5.0
"""Seconds in which a daemon that is asked to leave goes on ending what an earlier one left."""

SKIPPED_POLLS = 2
"""Polls in a row that could not even be made, after which waiting for idleness is hopeless."""


class RunEnder(Protocol):
    """What can end processes: a transport, or several."""

    def hurry(self) -> None:
        """See Transport."""
        ...

    async def sweep(self, run_ids: Collection[RunId], *, grace: float) -> int:
        """See Transport."""
        ...


class Shutdown:
    """Ends the daemon's work in good order, or at once; ``exit_code`` tells which.

    There is no ``orchestrator`` before the end of recovery, which ends what an earlier daemon left
    running. A daemon that is asked to stop before that gives ``recovery`` a few seconds more, and
    leaves what takes longer, such as a host that does not answer, to the next start.
    """

    def __init__(
        self,
        orchestrator: Orchestrator | None,
        transport: RunEnder,
        publish: Publish,
        deadline: StopDeadline | None = None,
    ) -> None:
        self.deadline = deadline or StopDeadline()
        self.orchestrator = orchestrator
        self._transport = transport
        self._publish = publish
        self.recovery = trio.CancelScope()
        self.asked = False
        self._signalled = False
        self._skipped = 0
        self._cannot_poll = trio.Event()
        self.exit_code = EXIT_OK
        self.reason = ""

    def begin(self, nursery: trio.Nursery, reason: str) -> None:
        """Start no run any more and end those under way politely, within a deadline."""
        self.asked, self.reason = True, reason
        self.deadline.begin()
        self._publish(facts.DaemonStopping(running=len(self._runs())))
        self._stop_work(nursery)
        nursery.start_soon(self._keep_deadlines)

    def _stop_work(self, nursery: trio.Nursery) -> None:
        if self.orchestrator is None:
            self._transport.hurry()
            nursery.start_soon(stop_recovery, self.recovery)
        else:
            self.orchestrator.giving_up = True
            self.orchestrator.shut_down()

    def _runs(self) -> list[RunId]:
        if self.orchestrator is None:
            return []
        return [claim.run_id for claim in self.orchestrator.snapshot().worked]

    async def _keep_deadlines(self) -> None:
        await trio.sleep_until(self.deadline.polite_until)
        self.end_grace()
        await trio.sleep_until(self.deadline.cut_until)
        await self._exit_now(EXIT_FAILURE)

    def end_grace(self) -> None:
        """Give nothing that runs any more time to end by itself."""
        self._transport.hurry()
        if self.orchestrator is not None:
            self.orchestrator.cut()

    def lose_lease(self) -> None:
        """Leave to the next leader what it can go on with, and give no other run any more time."""
        if self.orchestrator is not None:
            self.orchestrator.let_go()
        self.end_grace()

    async def _stop_at_once(self) -> None:
        self.exit_code, self.reason = EXIT_CUT_SHORT, "a second signal"
        self.end_grace()
        await trio.sleep(CUT_SECONDS)
        await self._exit_now(EXIT_CUT_SHORT)

    async def _exit_now(self, code: int) -> None:
        """End what can be found of the runs and leave; the next start ends the rest."""
        runs = self._runs()
        reason = f"out of time with {len(runs)} runs under way"
        try:
            with trio.move_on_after(LAST_SWEEP):
                await self._transport.sweep(runs, grace=0.0)
        except TransportError as exc:
            reason = f"{reason}; {exc}"
        self._publish(facts.DaemonStopped(reason=reason))
        os._exit(code)

    async def handle_signals(
        self, reload: Callable[[], None], *, task_status: trio.TaskStatus[None]
    ) -> None:
        """Obey SIGTERM, SIGINT and SIGHUP until cancelled; from then on a second one ends all.

        The first one to a daemon that ends for another reason, as it is idle, changes nothing.
        """
        wanted = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
        try:
            with trio.open_signal_receiver(*wanted) as signals:
                async with trio.open_nursery() as nursery:
                    task_status.started()
                    async for number in signals:
                        if number == signal.SIGHUP:
                            reload()
                        elif self._signalled:
                            nursery.start_soon(self._stop_at_once)
                        else:
                            self._signalled = True
                            if not self.asked:
                                self.begin(nursery, signal.Signals(number).name)
        finally:
            # Closing all and ending the interpreter takes some tenths of a second more, in which
            # a signal's default would end the process by that signal.
            if self.asked:
                for one in (signal.SIGTERM, signal.SIGINT):
                    signal.signal(one, self._signal_after_all)
                signal.signal(signal.SIGHUP, signal.SIG_IGN)

    def _signal_after_all(self, _number: int, _frame: object) -> None:
        if self._signalled:
            os._exit(EXIT_CUT_SHORT)
        self._signalled = True

    def __call__(self, fact: Fact) -> None:
        """Watch the polls, as a sink: where none can be made, no idleness can be seen."""
        if not isinstance(fact, PollCompleted):
            return
        in_vain = fact.result == "skipped" and fact.candidates is None
        self._skipped = self._skipped + 1 if in_vain else 0
        if self._skipped >= SKIPPED_POLLS:
            self._cannot_poll.set()
        elif self._cannot_poll.is_set():
            self._cannot_poll = trio.Event()

    async def stop_when_idle(self, orchestrator: Orchestrator) -> None:
        """Leave as soon as there is nothing to do and nothing to wait for."""
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._stop_when_unable_to_poll, nursery)
            await orchestrator.idle.wait()
            if not self.asked:
                self.exit_code = log_unfinished(orchestrator.snapshot())
                self.begin(nursery, "idle")

    async def _stop_when_unable_to_poll(self, nursery: trio.Nursery) -> None:
        while True:
            await self._cannot_poll.wait()
            if not self._runs():
                break
            await trio.sleep(1.0)
        if not self.asked:
            self.exit_code = EXIT_FAILURE
            self.begin(nursery, "polls are not possible")


async def stop_recovery(recovery: trio.CancelScope) -> None:
    """Let what an earlier daemon left be ended for a few seconds more."""
    await trio.sleep(RECOVERY_SECONDS)
    recovery.cancel()


def log_unfinished(snapshot: Snapshot) -> int:
    """Log what an idle daemon leaves undone, and return the exit code that says so."""
    log = structlog.get_logger()
    left = {c.issue.identifier: f"held: {c.reason}: {c.detail}" for c in snapshot.held}
    left |= {c.issue.identifier: f"not removed: {c.error}" for c in snapshot.cleaning if c.error}
    left |= {
        c.issue.identifier: "; ".join(f"{k.workspace.path} is kept: {k.reason}" for k in c.kept)
        for c in snapshot.kept
    }
    names = {issue.id: issue.identifier for issue in snapshot.candidates}
    for issue_id, verdict in snapshot.unfit.items():
        if verdict.gate == "blockers":
            left[names[issue_id]] = verdict.reason or ""
    for identifier, reason in sorted(left.items(), key=lambda item: natural_key(item[0])):
        log.warning("issue.left", issue=identifier, reason=reason)
    if snapshot.paused:
        log.warning("dispatch.paused")
    return EXIT_IDLE_BUT_LEFT if left or snapshot.paused else EXIT_OK
