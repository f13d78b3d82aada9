"""The end of a process of several workflows: one deadline and one exit code for all."""

from __future__ import annotations

import trio

from sortie.daemon.shutdown import (
    EXIT_IDLE_BUT_LEFT,
    RunEnder,
    Shutdown,
    log_unfinished,
    stop_recovery,
)
from sortie.daemon.stop_deadline import StopDeadline
from sortie.model import RunId
from sortie.orchestrator import Orchestrator
from sortie.telemetry import Publish
from sortie.telemetry.log import WORKFLOW


class MemberEnding:
    """How the end of the process reaches one workflow; see WorkflowEnding."""

    def __init__(self, shutdown: SharedShutdown, transport: RunEnder, name: str) -> None:
        self.name = name
        self.recovery = trio.CancelScope()
        self.orchestrator: Orchestrator | None = None
        self.transport = transport
        self._shutdown = shutdown

    @property
    def asked(self) -> bool:
        """Whether the process is ending."""
        return self._shutdown.asked

    def runs(self) -> list[RunId]:
        """Return the runs under way."""
        if self.orchestrator is None:
            return []
        return [claim.run_id for claim in self.orchestrator.snapshot().worked]

    def end_grace(self) -> None:
        """Give nothing that the workflow runs any more time to end by itself."""
        self.transport.hurry()
        if self.orchestrator is not None:
            self.orchestrator.cut()

    def lose_lease(self) -> None:
        """Leave to the next leader what it can go on with, and give no other run any more time."""
        if self.orchestrator is not None:
            self.orchestrator.let_go()
        self.end_grace()

    def stop(self, nursery: trio.Nursery) -> None:
        """End the work in good order."""
        if self.orchestrator is None:
            nursery.start_soon(stop_recovery, self.recovery)
        else:
            self.orchestrator.giving_up = True
            self.orchestrator.shut_down()


class SharedShutdown(Shutdown):
    """Ends the work of all workflows; ``stopping`` is set once that has begun."""

    def __init__(self, transport: RunEnder, publish: Publish, deadline: StopDeadline) -> None:
        super().__init__(None, transport, publish, deadline)
        self._members: list[MemberEnding] = []
        self.stopping = trio.Event()

    def member(self, transport: RunEnder, name: str) -> MemberEnding:
        """Take a workflow in, whose runs are on the hosts of this transport."""
        member = MemberEnding(self, transport, name)
        self._members.append(member)
        if self.asked:
            member.recovery.cancel()
        return member

    def release(self, member: MemberEnding) -> None:
        """Let a workflow go that has ended."""
        self._members.remove(member)

    def log_unfinished(self) -> int:
        """Log what an idle process leaves undone, and return the exit code that says so."""
        codes = []
        for member in self._members:
            if member.orchestrator is not None:
                token = WORKFLOW.set(member.name)
                codes.append(log_unfinished(member.orchestrator.snapshot()))
                WORKFLOW.reset(token)
        return EXIT_IDLE_BUT_LEFT if any(codes) else 0

    def _runs(self) -> list[RunId]:
        return [run_id for member in self._members for run_id in member.runs()]

    def _stop_work(self, nursery: trio.Nursery) -> None:
        self.stopping.set()
        if all(member.orchestrator is None for member in self._members):
            self._transport.hurry()  # as in the start of a single workflow
        for member in self._members:
            member.stop(nursery)

    def end_grace(self) -> None:
        """Give nothing that runs any more time to end by itself."""
        self._transport.hurry()
        for member in self._members:
            member.end_grace()
