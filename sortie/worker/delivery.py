"""From the end of an agent's work to an open pull request, on record step by step.

Rule 1: a step that was recorded is not repeated by a later run, and a request whose answer was lost
is looked for: a branch has at most one open pull request.
Rule 2: nothing is pushed that was not looked at, and never to the base.
"""

from __future__ import annotations

import os

from msgspec.structs import replace

from sortie.model import (
    Delivery,
    ErrorKind,
    Failed,
    Finish,
    Finished,
    Issue,
    RunEnd,
    Stage,
)
from sortie.model.deliveries import DIFF_LIMIT
from sortie.model.reviews import ReviewVerdict, SelfReview
from sortie.model.turns_under_way import DeliveryUnderWay
from sortie.scheduler import events as ev
from sortie.worker.context import Assignment, RemoteRepository, RunContext, RunReporter
from sortie.worker.environment import RunEnvironment
from sortie.worker.faults import WorkFault, about_push, about_review
from sortie.worker.outcome import Abandoned, delivery_needed
from sortie.worker.proof import WorkProof
from sortie.worker.proposal import Words, propose
from sortie.worker.self_review import SelfReviewer
from sortie.worker.work_record import WorkRecord
from sortie.workflow.fences import Fence
from sortie.workflow.prompts import Checkout
from sortie.workspaces import Workspace
from sortie.workspaces.git_values import Moved, Standing

_PROVEN = frozenset({Stage.PROVEN, Stage.PUSHED, Stage.DELIVERED})


class RunDelivery:
    """The way of one run's work; ``rounds`` counts how often the agent was sent back to it, and
    ``review_rounds`` how often it was by a reviewer."""

    def __init__(
        self,
        job: Assignment,
        context: RunContext,
        remote: RemoteRepository,
        reporter: RunReporter,
        workspace: Workspace,
        reviewer: SelfReviewer | None = None,
    ) -> None:
        self._reviewer = reviewer
        self._job = job
        self._context = context
        self._remote = remote
        self.repository = remote.at(os.path.dirname(workspace.path))
        self._reporter = reporter
        self._workspace = workspace
        self._environment = RunEnvironment(job, context, workspace)
        self._words = Words(job, context, workspace)
        self._proof = WorkProof(
            job, context, remote, reporter, workspace, self.repository, self._words
        )
        self._work: WorkRecord | None = None
        self.rounds = 0
        self.review_rounds = 0
        self._sent_back_with: str | None = None
        self.checkout: Checkout | None = None

    @property
    def delivery(self) -> Delivery | None:
        """What is known of the delivery, None before the branch is checked out."""
        return None if self._work is None else self._work.delivery

    async def check_out(self) -> None:
        """Fetch the repository, and have the branch checked out. Raises Abandoned."""
        with delivery_needed(ErrorKind.WORKSPACE_ERROR):
            env, access = self._environment.for_git(), await self._remote.access()
            if self._job.reaction is not None:  # what has happened is at the remote, just now
                self.repository.forget_fetch()
            await self.repository.fetch(access, env)
            branch = await self._words.branch()
            if branch == self.repository.base:
                what = f"repository.branch is {branch}, to which nothing is pushed"
                raise Abandoned(ErrorKind.TEMPLATE_ERROR, what)
            standing = await self.repository.check_out(
                self._workspace.path,
                self._workspace.key,
                self._job.run_id,
                branch,
                access,
                env,
                new=self._workspace.created,
            )
        self._begin(branch, standing)
        known = self.delivery
        if known is not None and known.is_pending:
            # What an earlier run had on record is this one's now, also where nothing is left to do.
            await self._reporter.commit(ev.DeliveryStepTaken(self._job.run_id, known))

    def _begin(self, branch: str, standing: Standing) -> None:
        base, before = self.repository.base, self._job.delivery
        self.checkout = Checkout(
            branch=branch, base=base, behind=standing.behind, unmerged=standing.unmerged
        )
        fresh = Delivery(
            branch=branch,
            base=base,
            host=self._workspace.host,
            stage=Stage.DROPPED,
            finish=Finish.DONE,
            began_at=standing.tip,
            head=standing.head,
            behind=standing.behind,
        )
        if before is not None and not self._workspace.created and before.branch == branch:
            # What the agent may replace is what it knew.
            known = replace(before, base=base)
            self._work = WorkRecord(self._job.run_id, self._reporter, known, before)
            self.review_rounds = 0 if known.review is None else known.review.rounds
        else:
            self._work = WorkRecord(self._job.run_id, self._reporter, fresh, None)

    @property
    def under_way(self) -> DeliveryUnderWay | None:
        """What another daemon needs to go on with it, None before the branch is checked out."""
        if self._work is None or self.checkout is None:
            return None
        return DeliveryUnderWay(
            delivery=self._work.delivery,
            recorded=self._work.is_recorded,
            behind=self.checkout.behind,
            unmerged=self.checkout.unmerged,
            rounds=self.rounds,
            review_rounds=self.review_rounds,
            sent_back_with=self._sent_back_with,
        )

    def go_on(self, known: DeliveryUnderWay) -> None:
        """Go on where another daemon has stopped, in the branch that it has checked out."""
        begun = known.delivery
        self.repository.know_base(begun.base)
        self.checkout = Checkout(
            branch=begun.branch, base=begun.base, behind=known.behind, unmerged=known.unmerged
        )
        recorded = begun if known.recorded else None
        self._work = WorkRecord(self._job.run_id, self._reporter, begun, recorded)
        self.rounds, self.review_rounds = known.rounds, known.review_rounds
        self._sent_back_with = known.sent_back_with

    @property
    def half_done(self) -> Finished | None:
        """How the agent had ended, where an earlier run was cut short behind that."""
        known = self.delivery
        if known is None or not known.is_pending:
            return None
        return Finished(finish=known.finish, reason=known.reason)

    async def note_end(self, end: RunEnd | None, answer: str | None) -> None:
        """Have on record that the agent has finished, where that calls for a delivery, and what it
        said last."""
        if isinstance(end, Finished) and self._is_delivered(end.finish):
            assert self._work is not None
            await self._work.finish(end, answer)

    async def deliver(self, end: RunEnd, issue: Issue) -> RunEnd | str:
        """Deliver the work after an end that calls for it, and that is on record; return how the
        run ends, or the prompt with which its agent is sent back to work. Raises Abandoned."""
        if not isinstance(end, Finished) or not self._is_delivered(end.finish):
            return end
        assert self._work is not None
        with delivery_needed():
            if not self.repository.was_fetched:  # the run goes on, and has checked nothing out
                access = await self._remote.access()
                await self.repository.fetch(access, self._environment.for_git())
            fault = await self._prove(self._work, issue)
            if fault is None:
                if not self._work.delivery.files_changed:
                    return await self._without_change(self._work, end, issue)
                if (asked := await self._judge(self._work, end, issue)) is not None:
                    return asked
                fault = await self._push(self._work)
            if fault is None:
                await propose(self._remote.forge, self._words, self._work, issue)
                return end
        return await self._send_back(self._work, fault, end)

    def _is_delivered(self, finish: Finish) -> bool:
        if finish is Finish.TURNS_USED:
            return self._context.settings.tracker.handoff_state is not None
        return finish in (Finish.DONE, Finish.REVIEW, Finish.LEFT_ACTIVE)

    async def _prove(self, work: WorkRecord, issue: Issue) -> WorkFault | None:
        """Return what the agent has to mend before its work is judged, None for nothing."""
        if work.delivery.stage in _PROVEN:
            return None
        return await self._proof.fault(work, issue)

    async def _judge(self, work: WorkRecord, end: Finished, issue: Issue) -> str | None:
        """Have proven work judged, where that is wanted; return what the agent is asked for by its
        reviewer, None where the work goes on its way."""
        if work.delivery.stage in _PROVEN:
            return None
        assert work.delivery.head is not None
        if self._reviewer is not None:
            review = await self._review(self._reviewer, work, issue)
            if self._is_sent_back(review, end):
                self.review_rounds += 1
                self._sent_back_with = review.commit
                await work.record(Stage.DROPPED)
                return self._prompt(about_review(review))
        env = self._environment.for_git()
        diff = await self.repository.diff(work.delivery.head, env, DIFF_LIMIT)
        await work.record(Stage.PROVEN, self._context.redact(diff))
        return None

    async def _review(self, reviewer: SelfReviewer, work: WorkRecord, issue: Issue) -> SelfReview:
        """Return the review of a commit, which is made once."""
        known = work.delivery.review
        if known is not None and known.commit == work.delivery.head:
            return known
        await work.record(Stage.FINISHED)  # what was verified need not be verified again
        rounds = self.review_rounds
        review = await reviewer.review(self._workspace, work.delivery, issue, rounds)
        work.delivery = replace(work.delivery, review=review)
        await work.record(Stage.FINISHED)
        return review

    def _is_sent_back(self, review: SelfReview, end: Finished) -> bool:
        settings = self._context.settings.self_review
        return (
            review.verdict is ReviewVerdict.REQUEST_CHANGES
            and settings is not None
            and self.review_rounds < settings.rounds
            and review.commit != self._sent_back_with  # else it was asked, and left it as it is
            and end.finish is not Finish.LEFT_ACTIVE
        )

    async def _without_change(self, work: WorkRecord, end: Finished, issue: Issue) -> RunEnd:
        """Return how a run ends that has changed nothing."""
        what = self._context.settings.repository.no_change
        await work.record(Stage.DROPPED)
        if what == "handoff" or end.finish is Finish.LEFT_ACTIVE:
            return end
        if what == "hold":
            why = f"; the agent says: {end.reason}" if end.reason else ""
            message = f"the run has changed nothing against {self.repository.base}{why}"
            return Failed(kind=ErrorKind.NO_CHANGE, message=message)
        moved = await self._context.tracker.transition(issue, what)
        self._reporter.tell(ev.IssueMoved(self._job.run_id, moved, by_us=True))
        return Finished(finish=Finish.LEFT_ACTIVE, reason=end.reason)

    async def _push(self, work: WorkRecord) -> WorkFault | None:
        known, env = work.delivery, self._environment.for_git()
        assert known.head is not None
        if known.stage in (Stage.PUSHED, Stage.DELIVERED):
            return None
        access = await self._remote.access()
        moved = await self.repository.push(known.head, known.branch, known.began_at, access, env)
        if isinstance(moved, Moved):
            self.repository.forget_fetch()
            await self.repository.fetch(access, env)
            await self.repository.check_out(
                self._workspace.path,
                self._workspace.key,
                self._job.run_id,
                known.branch,
                access,
                env,
                new=False,
            )
            return about_push(moved, known.branch)
        await work.record(Stage.PUSHED)
        return None

    async def _send_back(self, work: WorkRecord, fault: WorkFault, end: Finished) -> RunEnd | str:
        """Return a prompt for one more turn, or the end where there were enough of them."""
        await work.record(Stage.DROPPED)
        rounds = self._context.settings.verify.rounds
        if self.rounds < rounds and end.finish is not Finish.LEFT_ACTIVE:
            self.rounds += 1
            return self._prompt(fault)
        times = "once" if rounds == 1 else f"{rounds} times"
        why = fault.message
        message = f"the agent was sent back to it {times}: {why}" if rounds else why
        return Failed(kind=ErrorKind.VERIFICATION_FAILED, message=message)

    def _prompt(self, fault: WorkFault) -> str:
        return fault.prompt(Fence() if self._context.settings.trust.fences else None)
