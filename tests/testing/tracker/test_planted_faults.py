"""The kit finds what an outsider's tracker does wrong: each fault fails the check about it."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace
from toy_tracker.tracker import ToyTracker

from sortie.model import Issue, IssueId, TrackerError, TrackerErrorKind
from sortie.testing.tracker import CHECKS, Status
from sortie.trackers import IssuesRead
from tests.trackers.toy.rig import RIGS


async def move_anyway(self: ToyTracker, issue: Issue, state: str) -> Issue:
    """Move an issue from whatever state it is in."""
    present = await self.find(issue.id)
    return await TRANSITION(self, present or issue, state)


async def post_again(self: ToyTracker, issue: Issue, body: str, *_: Any, **__: Any) -> None:
    """Post a comment without a look for an earlier try."""
    await self._ask("POST", "comments", {"body": body}, name=issue.id)


async def post_once_in_a_life(
    self: ToyTracker, issue: Issue, body: str, key: str | None = None, *, again: bool = False
) -> None:
    """Forget that an earlier life may have made the comment."""
    await COMMENT(self, issue, body, key)


async def drop_the_last_page(self: ToyTracker, states: Collection[str]) -> Sequence[Issue]:
    """Take a full page for the last one."""
    return list(await LIST(self, states))[:100]


async def give_up_silently(self: ToyTracker, states: Collection[str]) -> Sequence[Issue]:
    """Return no issues where they cannot be asked for."""
    with suppress(TrackerError):
        return await LIST(self, states)
    return []


async def move_once_more(self: ToyTracker, issue: Issue) -> None:
    """Move the issue to its state, whatever became of it meanwhile."""
    await move_anyway(self, issue, issue.state)


async def deny_a_lost_move(self: ToyTracker, issue: Issue, state: str) -> Issue:
    """Take a lost answer for a refusal."""
    try:
        return await TRANSITION(self, issue, state)
    except TrackerError as error:
        raise TrackerError(TrackerErrorKind.INVALID, str(error)) from error


async def hide_the_unreadable(self: ToyTracker, ids: Collection[IssueId]) -> IssuesRead:
    """Pass over an issue that cannot be read, as if it were not there."""
    return replace(await READ(self, ids), failed={})


TRANSITION, COMMENT = ToyTracker.transition, ToyTracker.comment
LIST, READ = ToyTracker.fetch_candidates, ToyTracker.fetch_by_ids

FAULTS = {
    "move.conflict": ("transition", move_anyway),
    "move.complete": ("complete_move", move_once_more),
    "move.lost-answer": ("transition", deny_a_lost_move),
    "comment.lost-answer": ("comment", post_again),
    "comment.again": ("comment", post_once_in_a_life),
    "list.whole": ("fetch_candidates", drop_the_last_page),
    "outage.all-requests": ("fetch_candidates", give_up_silently),
    "read.unreadable": ("fetch_by_ids", hide_the_unreadable),
}
"""By the check that finds it: what is done wrong."""


@pytest.mark.parametrize("check", FAULTS)
async def test_a_planted_fault_is_found(
    check: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The check fails with a reason; without the fault it passes (tests/contract)."""
    monkeypatch.setattr(ToyTracker, *FAULTS[check])

    async with RIGS["http"](tmp_path) as rig:
        verdict = await CHECKS[check].verdict(rig, 30.0)

    assert verdict.status is Status.FAILED
    assert verdict.reason
