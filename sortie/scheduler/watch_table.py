"""The watched pull requests, by issue, and what is known of each beyond what is on record.

Rule: at most one request about a pull request is under way; its answer carries its ``token``.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Literal

from msgspec import Struct

from sortie.model import Issue, IssueId
from sortie.model.pull_requests import PullRequestState
from sortie.model.watches import Watch
from sortie.model.webhooks import Part
from sortie.scheduler.webhook_table import SHORTEST_GAP

TOGETHER = 5.0
"""Seconds by which a look may come early, so that several are one."""


class Watched(Struct, kw_only=True):
    """A watched pull request. Times are monotonic seconds.

    The next look, errand or merge is at ``due_at``, or is under way with ``token``. ``interval`` is
    between two looks. ``seen`` is what was seen last, and ``writers`` who of its authors may push.
    ``head_since`` is when its head was first seen. ``waits_for`` says what it waits for.
    ``review_since`` is when reviewers were last heard with something new, ``reviewed``.
    ``conflict`` is the head that was seen in conflict once. ``tries`` counts failures in a row, and
    ``refused`` those of the merge. ``ready``: nothing but the merge train keeps it from its merge.
    ``head_known_at`` is when the newest of its heads became known, ``rerun_at`` when a check was
    made again, ``updated_at`` when its base was brought in, and ``front_since`` when it was at the
    front of the train. ``named_at`` is when the delivery of a webhook came that has named it since
    it was looked at last, at ``looked_at``, None where none has; ``part`` is what has changed by
    such. ``woken`` tells that of the look under way, and ``gap`` is how long such looks are apart.
    ``counted_on``: deliveries were counted on when it was seen last. ``not_before``: the forge was
    in trouble, and is left alone until then.
    """

    issue: Issue
    watch: Watch
    due_at: float
    interval: float
    token: int | None = None
    doing: Literal["look", "errand", "merge"] = "look"
    seen: PullRequestState | None = None
    writers: frozenset[str] = frozenset()
    head_since: float = 0.0
    waits_for: str = "it was not looked at yet"
    review_since: float = math.inf
    reviewed: frozenset[str] = frozenset()
    conflict: str | None = None
    rerun_at: float = -math.inf
    head_known_at: float = -math.inf
    updated_at: float = -math.inf
    front_since: float = math.inf
    tries: int = 0
    refused: int = 0
    ready: bool = False
    named_at: float | None = None
    part: Part | None = None
    looked_at: float = -math.inf
    woken: bool = False
    counted_on: bool = False
    gap: float = SHORTEST_GAP
    not_before: float = -math.inf

    @property
    def name(self) -> str:
        """What people call the pull request."""
        return f"#{self.watch.pull_request.number}"

    @property
    def place(self) -> tuple[bool, float, int]:
        """Where it stands in the merge train of its base: smaller is merged first."""
        watch = self.watch
        return (watch.merging is None, watch.since, watch.pull_request.number)


class WatchTable(dict[IssueId, Watched]):
    """What is watched, by issue."""

    def wakeup_at(self) -> float:
        """Return when something is next due; inf where nothing is."""
        due = (one.due_at for one in self.values() if one.token is None)
        return min(due, default=math.inf)

    def take_due(self, now: float) -> list[Watched]:
        """Return what is due; nothing where none is, else also what is due within TOGETHER."""
        if self.wakeup_at() > now:
            return []
        return [one for one in self.values() if one.token is None and one.due_at <= now + TOGETHER]

    def ahead_of(self, watched: Watched) -> Watched | None:
        """Return what is merged into the same base before a pull request, None for nothing."""
        rivals = (one for one in self._of_base(watched) if one.ready or one.watch.merging)
        return min(
            (one for one in rivals if one.place < watched.place),
            key=lambda one: one.place,
            default=None,
        )

    def is_alone(self, watched: Watched) -> bool:
        """Tell whether no other pull request of its base could be merged before it."""
        return not any(one.ready or one.watch.merging for one in self._of_base(watched))

    def base_moved(self, watched: Watched, now: float) -> None:
        """Have the others of a base looked at soon: one of them was merged."""
        for one in self._of_base(watched):
            one.due_at = min(one.due_at, now)

    def _of_base(self, watched: Watched) -> Iterable[Watched]:
        base = _base_of(watched)
        return (
            one
            for one in self.values()
            if one is not watched and _base_of(one) == base and not one.watch.over
        )


def _base_of(watched: Watched) -> tuple[str, str]:
    request = watched.watch.pull_request
    return request.place, request.base
