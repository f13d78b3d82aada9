"""Which answers of the tracker are old news, known from what goes into a scheduler and comes out.

Rule 1: an answer to a question that was asked before a claim last learned something changes nothing
about that claim.
Rule 2: a claim with a question of its own under way waits for the answer to that.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from msgspec.structs import replace

from sortie.model import HoldReason, IssueId
from sortie.scheduler import Decision, Event
from sortie.scheduler import decisions as do
from sortie.scheduler import events as ev
from sortie.scheduler.claims import WORKED, Claim, Cleaning, HandingOff, Held, Rechecking, Waiting

Claims = Mapping[IssueId, Claim]


class Freshness:
    """Numbers of the questions asked in one life, and which was the newest when an issue's claim
    last learned something."""

    def __init__(self) -> None:
        self._newest = 0
        self._informed: dict[IssueId, int] = {}

    def hear(
        self, event: Event, before: Claims, after: Claims, decisions: Sequence[Decision]
    ) -> Iterator[str]:
        """Take in one event with the claims on either side of it; yield what was obeyed that
        should not have been."""
        match event:
            case ev.IssuesRefreshed(token=token, asked=asked):
                for issue_id in asked:
                    was, now = before.get(issue_id), after.get(issue_id)
                    if was is None or was is now:
                        continue
                    own = isinstance(was, Rechecking) and was.token == token
                    if own or token > self._informed.get(issue_id, 0):
                        if issue_id not in event.failed:
                            self._informed[issue_id] = token
                    elif not _is_the_same(was, now):
                        yield f"the old answer {token} made {was} to {now}"
            case _:
                for issue_id in _told_of(event, before, after):
                    if before.get(issue_id) is not after.get(issue_id):
                        self._informed[issue_id] = self._newest
        if not isinstance(event, ev.TransitionAnswered | ev.WorkspaceCleaned):
            for issue_id, claim in before.items():
                if _waits_for_its_own(claim) and not _still_does(claim, after.get(issue_id)):
                    yield f"{event} made {claim} to {after.get(issue_id)}, which has asked"
        for decision in decisions:
            if isinstance(decision, do.Refresh | do.HandOff):
                self._newest = max(self._newest, decision.token)


def _told_of(event: Event, before: Claims, after: Claims) -> Iterator[IssueId]:
    """Yield the issues of which an event says how they stand, or whose claim begins anew."""
    match event:
        case ev.WorkerExited(run_id=run_id):
            for issue_id, claim in before.items():
                if isinstance(claim, WORKED) and claim.run_id == run_id:
                    yield issue_id
        case ev.IssueMoved(issue=issue):
            yield issue.id
        case ev.TransitionAnswered(issue_id=issue_id) | ev.WorkspaceCleaned(issue_id=issue_id):
            yield issue_id
        case ev.StopAsked():
            for issue_id, claim in after.items():
                if isinstance(claim, Held) and not isinstance(before.get(issue_id), Held):
                    yield issue_id
        case ev.RetryAsked(issue=name):
            yield from (i for i, c in after.items() if name in (i, c.issue.identifier))
        case _:
            pass


def _waits_for_its_own(claim: Claim) -> bool:
    match claim:
        case HandingOff(token=token):
            return token is not None
        case Cleaning(busy=busy):
            return busy
        case _:
            return False


def _still_does(was: Claim, now: Claim | None) -> bool:
    if isinstance(was, HandingOff):
        return isinstance(now, HandingOff) and now.token == was.token
    return isinstance(now, Cleaning) and now.busy


def _is_the_same(was: Claim, now: Claim | None) -> bool:
    """Tell whether a claim says the same still; a due wait may have been chosen meanwhile."""
    if isinstance(was, Rechecking) and was.waited is not None and now is was.waited:
        return False  # its own question was taken from it
    core = now.waited if isinstance(now, Rechecking) and now.waited is not None else now
    if isinstance(was, Waiting) and isinstance(core, Waiting):
        return replace(was, reason="") == replace(core, reason="")
    if isinstance(was, Waiting) and isinstance(core, Held):
        return core.reason is HoldReason.SESSION_BUDGET_EXHAUSTED
    return was == core
