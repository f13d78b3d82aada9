"""The programs of a run's turns, with which another daemon can go on.

Rule 1: what another daemon needs is on record before the program starts, and is forgotten before
anything follows from the end of the turn: no turn has its effects twice.
Rule 2: a program that is let go is neither ended nor heard to its end. One that was to be gone on
with and was not is ended with the run.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

import trio
from msgspec.structs import replace

from sortie.model import Issue, TransportError
from sortie.model.turns_under_way import DeliveryUnderWay, TurnUnderWay
from sortie.scheduler import events as ev
from sortie.transports import Command, Process
from sortie.transports.kept_programs import KeepsPrograms, KeptProcess
from sortie.worker.context import Assignment, RunContext, RunReporter, RunScopes
from sortie.worker.turn_events import TurnRequest
from sortie.workspaces import GitWork


class TurnPrograms:
    """Starts them; see StartTurn. ``turn`` is the one under way, without its program."""

    def __init__(
        self, job: Assignment, context: RunContext, reporter: RunReporter, scopes: RunScopes
    ) -> None:
        self._job = job
        self._context = context
        self._reporter = reporter
        self._scopes = scopes
        self._is_recorded = False
        self.turn: TurnUnderWay | None = None
        taken = job.taken_over
        self._adopts = None if taken is None else taken.turn

    @asynccontextmanager
    async def __call__(self, command: Command, memo: str) -> AsyncIterator[Process]:
        """Start a program, or go on with the one that was taken over; see StartTurn."""
        transport, turn = self._context.transport, self.turn
        assert isinstance(transport, KeepsPrograms)
        assert turn is not None

        async def on_record(name: str) -> None:
            known = replace(turn, program=name, memo=memo)
            self._is_recorded = True
            await self._reporter.commit(ev.TurnUnderWayKnown(self._job.run_id, known))

        command = replace(command, on_record=on_record)
        adopts = self._adopts
        if adopts is None:
            opened = transport.process(command)
        else:
            opened, self._is_recorded = transport.adopted(command, adopts.program), True
        async with opened as process:
            self._adopts = None
            self._scopes.can_be_let_go = isinstance(process, KeptProcess)
            try:
                yield process
            finally:
                self._scopes.can_be_let_go = False
                if self._scopes.is_let_go and isinstance(process, KeptProcess):
                    process.let_go()

    async def turn_ended(self) -> None:
        """Let no other daemon go on with a turn that has ended; returns never where the run was let
        go meanwhile."""
        if self._scopes.is_let_go:
            await trio.sleep_forever()
        if self._is_recorded:
            self._is_recorded = False
            self._reporter.tell(ev.TurnUnderWayKnown(self._job.run_id, None))

    async def end_unadopted(self) -> None:
        """End a program that was to be gone on with, and was not."""
        if self._adopts is not None:
            self._adopts = None
            grace = self._context.settings.agent.stop_grace
            with self._scopes.shield(), suppress(TransportError):  # it is swept before the next use
                await self._context.transport.sweep([self._job.run_id], grace=grace)


def turn_under_way(
    turn: TurnRequest,
    issue: Issue,
    before: GitWork,
    delivery: DeliveryUnderWay | None,
    *,
    mends: bool,
) -> TurnUnderWay:
    """Return what another daemon needs to go on with a turn that begins now; ``before`` is what was
    in the workspace when the run began."""
    context = turn.context
    return TurnUnderWay(
        number=turn.number,
        issue=issue,
        daemon=context.daemon,
        agent=context.settings.agent.kind,
        command=context.agent_command,
        mends=mends,
        spent=turn.usage.spent,
        activity=turn.activity.activity,
        answer=turn.activity.answer,
        head=before.head,
        head_error=before.error,
        delivery=delivery,
    )
