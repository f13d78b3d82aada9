"""Watched pull requests of every kind, as the dashboard and ``sortie status`` may find them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from sortie.web.state import StateView
from sortie.web.watches import GateAnswer, UsedRunsView, WatchedView, WatchView

HOLD = "the agent was asked 3 times about review of https://forge.example/shop/web/pull/71"
KINDS: tuple[Mapping[str, Any], ...] = (
    {
        "stage": "needs_person",
        "exhausted": "review",
        "held": "reaction_exhausted",
        "runs": {"checks": 1, "review": 3},
        "waits_for": f"its issue is held: {HOLD}",
    },
    {
        "stage": "needs_person",
        "held": "verification_failed",
        "runs": {"checks": 2},
        "waits_for": "its issue is held: make test fails, with exit status 2",
    },
    {
        "stage": "reaction",
        "reaction": ("conflicts", "checks", "review"),
        "runs": {"conflicts": 1, "checks": 1, "review": 1},
        "waits_for": "a run answers conflicts, checks, review",
    },
    {
        "stage": "reaction",
        "reaction": ("commands",),
        "runs": {"commands": 4},
        "waits_for": "a run answers commands",
    },
    {"stage": "merging", "merging": True, "waits_for": "it is being merged", "next_look_at": None},
    {
        "stage": "merging",
        "merging": True,
        "queued": True,
        "waits_for": "the forge merges it by itself once all that it demands is there",
    },
    {"stage": "watched", "waits_for": "it has 0 of 1 approvals"},
    {
        "stage": "watched",
        "waits_for": "waited for: build (3.11), build (3.12), build (3.13), lint, docs, 4 more",
        "runs": {"checks": 1},
    },
    {"stage": "watched", "waits_for": "#64 is merged first"},
    {
        "stage": "watched",
        "waits_for": "the forge refuses to merge it: At least 1 approving review is required by"
        " reviewers with write access.",
    },
    {
        "stage": "watched",
        "waits_for": "it could not be looked at: GET https://forge.example/api/v1/repos/shop/web"
        "/pulls failed: 502 Bad Gateway",
    },
    {"stage": "ending", "waits_for": "move_issue is tried again: the tracker takes no changes"},
)
TITLES = (
    "Say which file could not be opened",
    "Retry the upload when the connection is reset in the middle of a chunk",
    "Stop logging customers' addresses",
)


def watched(now: datetime) -> tuple[WatchedView, ...]:
    """Return one of every kind."""
    return tuple(
        WatchedView(
            issue_id=f"id-p{number}",
            issue_identifier=f"SHOP-{300 + number}",
            title=TITLES[number % len(TITLES)],
            number=71 - number,
            pull_request=f"https://forge.example/shop/web/pull/{71 - number}",
            branch=f"sortie/SHOP-{300 + number}",
            since=now - timedelta(seconds=400 + 31_000 * number),
            rule="prices" if number % 3 == 1 else None,
            **{"next_look_at": now + timedelta(seconds=12 + 70 * number), "runs": {}, **kind},
        )
        for number, kind in enumerate(KINDS)
    )


def with_watched(state: StateView) -> StateView:
    """Return the same daemon with twelve watched pull requests."""
    rows = watched(state.generated_at)
    return replace(state, watched=rows, counts=replace(state.counts, watched=len(rows)))


GATES = (
    GateAnswer(gate="pull request", open=True, reason=None),
    GateAnswer(gate="issue", open=False, reason="its issue is in hand"),
    GateAnswer(gate="approvals", open=False, reason="changes are requested by alice"),
    GateAnswer(gate="merge train", open=True, reason=None),
)


def watch(row: WatchedView) -> WatchView:
    """Return what decides about a watched pull request."""
    return WatchView(
        standing=row,
        title=f"{row.issue_identifier}: {row.title}",
        head="0123456789abcdef0123456789abcdef01234567",
        draft=True,
        gates=GATES,
        runs=(
            UsedRunsView(kind="checks", used=1, most=2),
            UsedRunsView(kind="review", used=3, most=3),
            UsedRunsView(kind="commands", used=1, most=0),
        ),
        answers=("the failed check <b>ci</b>", "a thread of alice about web/shop.py:8"),
        causes=("conflicts at 0123456789ab", "check 12 at 0123456789ab", "note in a review 8"),
        causes_omitted=7,
    )
