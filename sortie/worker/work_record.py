"""How far a run's delivery has come: what is known of it, and what of that is on record."""

from __future__ import annotations

from msgspec.structs import replace

from sortie.model import Delivery, Finished, RunId, Stage
from sortie.scheduler import events as ev
from sortie.telemetry import facts
from sortie.worker.context import RunReporter


class WorkRecord:
    """Keeps the delivery of one run; ``recorded`` is what an earlier run has left on disk."""

    def __init__(
        self, run_id: RunId, reporter: RunReporter, delivery: Delivery, recorded: Delivery | None
    ) -> None:
        self._run_id = run_id
        self._reporter = reporter
        self._recorded = recorded
        self.delivery = delivery

    @property
    def is_recorded(self) -> bool:
        """Whether what is known is on disk."""
        return self._recorded == self.delivery

    async def finish(self, end: Finished, answer: str | None) -> None:
        """Have on disk how the agent has ended, and what it said last."""
        self.delivery = replace(self.delivery, finish=end.finish, reason=end.reason, answer=answer)
        await self.record(Stage.FINISHED)

    async def record(self, stage: Stage, diff: str | None = None) -> None:
        """Have what is known on disk before the next step is taken."""
        self.delivery = known = replace(self.delivery, stage=stage)
        before = self._recorded
        if known == before and diff is None:
            return
        self._recorded = known
        await self._reporter.commit(ev.DeliveryStepTaken(self._run_id, known, diff))
        if before is not None and before.stage is stage:
            return
        request = known.pull_request
        self._reporter.publish(
            facts.DeliveryAdvanced(
                run_id=self._run_id,
                stage=stage,
                branch=known.branch,
                head=known.head,
                files_changed=known.files_changed,
                added=known.added,
                removed=known.removed,
                pull_request=None if request is None else request.url,
            )
        )
