"""Comments on issues: what they say, and that each is made once.

Rule 1: a comment on the end of a run is on disk, as one to be made, before the tracker is asked.
Rule 2: a tracker that is down is asked again, also by the next daemon. A repeated request says
so, and the adapter looks for the comment before it makes it.
"""

from __future__ import annotations

import trio
from msgspec import Struct

from sortie.model import Issue, RunId, StoreError, TrackerError
from sortie.orchestrator.comment_texts import (
    comment_of_agent,
    comment_on_end,
    comment_on_question,
)
from sortie.orchestrator.context import OrchestratorContext
from sortie.resources.lease import LeaseLost
from sortie.scheduler import decisions as do
from sortie.scheduler import records as rec
from sortie.store import RecordRefused
from sortie.telemetry import facts
from sortie.trackers.outages import OutagePauses

COMMENT_PATIENCE = 6 * 3600.0
"""Seconds after which a comment that could not be made is given up."""


FORGET_PAUSE = 5.0
"""Seconds between two tries to record that a comment was made."""


class Remark(Struct, frozen=True, kw_only=True):
    """A comment to be made on an issue about a run.

    ``recorded``: it is on disk as one to be made. ``again``: it may have been made already.
    """

    run_id: RunId
    lifecycle: str
    body: str
    recorded: bool = False
    again: bool = False

    @property
    def key(self) -> str:
        """The name of this comment, which no other has."""
        return f"{self.run_id}:{self.lifecycle}"


AGENT_LIFECYCLE = "agent"
"""The lifecycle of the comments that agents make; on record their number in the run follows."""


def record_of(
    decision: do.PostComment | do.PostAgentComment | do.PostQuestion,
) -> rec.RecordComment:
    """Return what is on disk before a comment is made."""
    if isinstance(decision, do.PostAgentComment):
        return rec.RecordComment(
            run_id=decision.run_id,
            issue=decision.issue,
            lifecycle=f"{AGENT_LIFECYCLE}:{decision.number}",
            body=comment_of_agent(decision.text),
        )
    if isinstance(decision, do.PostQuestion):
        return rec.RecordComment(
            run_id=decision.asked.run_id,
            issue=decision.issue,
            lifecycle="question",
            body=comment_on_question(decision.asked, decision.deadline),
        )
    return rec.RecordComment(
        run_id=decision.run_id,
        issue=decision.issue,
        lifecycle=decision.lifecycle,
        body=comment_on_end(decision.report, decision.workspace),
    )


def remark_of(record: rec.RecordComment, *, again: bool) -> Remark:
    """Return a comment that is on disk, of this daemon or of an earlier one."""
    return Remark(
        run_id=record.run_id,
        lifecycle=record.lifecycle,
        body=record.body,
        recorded=True,
        again=again,
    )


async def comment(context: OrchestratorContext, issue: Issue, remark: Remark) -> None:
    """Write a comment, later where the tracker is down or wants to be left alone.

    A failure is published as a fact and has no other consequence.
    """
    error = await _made(context, issue, remark)
    context.publish(
        facts.CommentCompleted(
            issue=issue,
            lifecycle=remark.lifecycle.partition(":")[0],
            result="success" if error is None else "error",
            error=error,
        )
    )
    if remark.recorded:
        await _forget(context, remark)


async def _forget(context: OrchestratorContext, remark: Remark) -> None:
    """Record that a comment is not to be made any more, as soon as records can be written.

    Where that is not possible before this daemon ends, the next one finds the comment.
    """
    forget = rec.ForgetComment(run_id=remark.run_id, lifecycle=remark.lifecycle)
    while True:
        try:
            await context.store.commit([forget], context.wall())
        except (LeaseLost, RecordRefused):
            return
        except StoreError:
            await trio.sleep(FORGET_PAUSE)
        else:
            return


async def _made(context: OrchestratorContext, issue: Issue, remark: Remark) -> str | None:
    """Try to write a comment and return why it could not be written, None where it was."""
    again, pauses = remark.again, OutagePauses()
    give_up_at = trio.current_time() + COMMENT_PATIENCE
    while True:
        try:
            await context.tracker.comment(issue, remark.body, remark.key, again=again)
        except TrackerError as exc:
            wait = pauses.after(exc)
            if not exc.kind.is_outage or trio.current_time() + wait > give_up_at:
                return str(exc)
        else:
            return None
        await trio.sleep(wait)
        again = True
