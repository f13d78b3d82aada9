"""A process of the daemon: candidate for some workflows, leader of those whose lease it has."""

from __future__ import annotations

import trio

from sortie.daemon.candidacy import Candidacy
from sortie.daemon.leadership import leading
from sortie.facts import Fact
from sortie.model import SortieError
from sortie.resources.lease import Lease
from tests.sim.leases.database import LeasedStore
from tests.sim.leases.keeper import SimKeeper
from tests.sim.leases.life import Life
from tests.sim.leases.surroundings import Surroundings
from tests.sim.leases.timed_lease import BOOT
from tests.sim.leases.watchdog import SimWatchdog
from tests.sim.leases.workflow import Workflow
from tests.sim.system.plug import Killed

BROKEN_FOR = 10.0
"""Seconds for which a process does not stand for a workflow that failed in it."""

_LOOK = 4.0
"""Seconds in which a candidate sees that its process is to end."""


class SimDaemon:
    """A process; ``run`` returns when it has ended. ``lives`` are those of workflows it leads."""

    def __init__(
        self,
        name: str,
        around: Surroundings,
        workflows: list[Workflow],
        weight: float,
        watchdog: SimWatchdog,
    ) -> None:
        self.id = name
        self.around = around
        self.workflows = workflows
        self.weight = weight
        self.keeper = SimKeeper(name, around, weight, watchdog)
        self.lives: dict[str, Life] = {}
        self.stopping = False
        self._working = len(workflows)
        self._over = trio.Event()

    # What the judge sees

    @property
    def works_well(self) -> bool:
        """Whether it lives, is awake, and reaches the database at once."""
        plug = self.around.plug
        return not plug.pulled and not plug.is_frozen and self.around.database.is_fair

    def can_lead(self, workflow: str) -> bool:
        """Tell whether it is a candidate on record."""
        row = self.around.server.daemons.get(self.id)
        return row is not None and workflow in row.candidates and not row.draining

    def leads(self, workflow: str, token: int) -> bool:
        """Tell whether it does the work of a leader with this token, and could go on with it."""
        plug = self.around.plug
        if plug.pulled or plug.is_frozen or self.around.database.is_cut:
            return False
        candidacy = self.keeper.candidacies.get(workflow)
        if candidacy is None or candidacy.lease is None or candidacy.is_lost:
            return False
        return candidacy.lease.token == token

    # The process

    async def run(self) -> None:
        """Stand by, lead, and end when told to, or killed."""
        around = self.around
        around.trace.note("daemon", f"{self.id} starts")
        BOOT.set(around.boot)
        try:
            with around.plug.scope:
                async with trio.open_nursery() as nursery:
                    for workflow in self.workflows:
                        nursery.start_soon(self._supervise, workflow)
                    async with trio.open_nursery() as keeping:
                        keeping.start_soon(self.keeper.work)
                        await self._over.wait()
                        keeping.cancel_scope.cancel()
                    await self.keeper.leave()
        except* Killed:
            pass
        around.plug.pull()
        around.trace.note("daemon", f"{self.id} has ended")

    async def _sleep(self, seconds: float) -> None:
        await self.around.plug.through(lambda: trio.sleep(seconds))

    async def _supervise(self, workflow: Workflow) -> None:
        """Lead a workflow whenever that is possible; a process of one workflow ends with it."""
        while not self.stopping:
            failed = False
            try:
                await self._stand(workflow)
            except* SortieError as group:
                self.around.trace.note("daemon", f"{self.id} fails: {group.exceptions[0]}")
                failed = True
            if failed and len(self.workflows) == 1:
                break
            if failed:
                await self._sleep(BROKEN_FOR)
        self._working -= 1
        if not self._working:
            self._over.set()

    async def _stand(self, workflow: Workflow) -> None:
        """Stand for a workflow, lead it once, and give its lease back."""
        candidacy = Candidacy(workflow.name, self.around.server.length)
        self.keeper.stand(candidacy)
        try:
            while not candidacy.leading.is_set():
                if self.stopping:
                    return
                with trio.move_on_after(_LOOK):
                    await self.around.plug.through(candidacy.leading.wait)
            assert candidacy.lease is not None
            await self._lead(workflow, candidacy, candidacy.lease)
        finally:
            self.keeper.withdraw(candidacy)

    async def _lead(self, workflow: Workflow, candidacy: Candidacy, lease: Lease) -> None:
        life = self.lives[workflow.name] = Life(self.around, workflow, candidacy, lease)
        life.stopping = self.stopping
        rows, around = workflow.rows, self.around
        store = LeasedStore(rows, lease, around.database, around.plug, around.draw)
        try:
            async with leading(candidacy, self._publish, life.end_at_once):
                await life.lead(store)
        finally:
            store.close()
            del self.lives[workflow.name]

    def stop(self) -> None:
        """End in good order, as SIGTERM asks for."""
        self.stopping = True
        for life in self.lives.values():
            life.stop()

    def _publish(self, fact: Fact) -> None:
        self.around.trace.tell("lease", fact)
