"""What keeps a pull request from its merge, gate by gate."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from sortie.config.reactions import MergeReaction, MergeRequirements
from sortie.model.pull_requests import (
    CheckState,
    HeadCheck,
    PullRequestState,
    Review,
    ReviewThread,
)
from sortie.scheduler.merge_gates import MergeView, first_closed_for_merge
from tests.store.watches import REQUEST

GREEN = HeadCheck(id="1", name="test", state=CheckState.SUCCESS, required=True)
APPROVED = Review(id="2", author="ann", state="approved")
READY = PullRequestState(
    pull_request=REQUEST, conflicts=False, checks=(GREEN,), reviews=(APPROVED,)
)
VIEW = MergeView(
    seen=READY, settings=MergeReaction(), head_age=10.0, writers=frozenset({"ann", "bob"})
)


def closed(**changes: object) -> str | None:
    """Return the first closed gate and why, with a state that differs so."""
    verdict = first_closed_for_merge(replace(VIEW, seen=replace(READY, **changes)))
    return None if verdict is None else f"{verdict.gate}: {verdict.reason}"


def test_what_is_ready_is_merged() -> None:
    """All gates are open."""
    assert closed() is None


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"pull_request": replace(REQUEST, state="closed")}, "pull request: it is closed"),
        ({"pull_request": replace(REQUEST, draft=True)}, "pull request: it is a draft"),
        ({"conflicts": True}, "conflicts: it conflicts with its base"),
        (
            {"conflicts": None},
            "conflicts: the forge has not computed yet whether it conflicts with its base",
        ),
        (
            {"checks": (replace(GREEN, state=CheckState.FAILURE),)},
            "checks failed: failed: test",
        ),
        (
            {"checks": (replace(GREEN, state=CheckState.FAILURE, required=None),)},
            "checks failed: failed: test",
        ),
        (
            {"checks": (replace(GREEN, state=CheckState.FAILURE, required=False),)},
            "checks failed: failed: test",
        ),
        ({"reviews": ()}, "approvals: it has 0 of 1 approvals"),
        ({"reviews": (replace(APPROVED, author="mallory"),)}, "approvals: it has 0 of 1 approvals"),
        ({"reviews": (replace(APPROVED, bot=True),)}, "approvals: it has 0 of 1 approvals"),
        (
            {"reviews": (APPROVED, Review(id="3", author="bob", state="changes_requested"))},
            "approvals: changes are requested by bob",
        ),
        (
            {"threads": (ReviewThread(id="t", resolved=False),)},
            "threads: 1 thread not resolved",
        ),
        (
            {"checks": (replace(GREEN, state=CheckState.PENDING),)},
            "checks pending: waited for: test",
        ),
        (
            {"checks": ()},
            "checks pending: no check has begun at this head, which is 10 s old",
        ),
        (
            {"checks": (replace(GREEN, name="sortie/verify"),)},
            "checks pending: no check has begun at this head, which is 10 s old",
        ),
        ({"refusal": "a ruleset"}, "forge: the forge says: a ruleset"),
    ],
)
def test_what_is_not_ready_waits(changes: dict[str, object], sentence: str) -> None:
    """For the first gate that is closed."""
    assert closed(**changes) == sentence


@pytest.mark.parametrize(
    "changes",
    [
        {"checks": (GREEN, replace(GREEN, name="lint", state=CheckState.FAILURE, required=False))},
        {"reviews": (APPROVED, Review(id="3", author="mallory", state="changes_requested"))},
        {"threads": (ReviewThread(id="t", resolved=None),)},
        {"checks": (replace(GREEN, state=CheckState.PENDING),), "automatic": True},
    ],
)
def test_what_does_not_count_keeps_nothing_back(changes: dict[str, object]) -> None:
    """An optional check, a stranger's opinion, what the forge does not say; and what the forge
    itself waits for."""
    assert closed(**changes) is None


def test_a_named_check_is_waited_for_before_it_is_there() -> None:
    """Also by what the forge does not demand."""
    needs = MergeReaction(require=MergeRequirements(checks=("build",)))
    verdict = first_closed_for_merge(replace(VIEW, settings=needs))

    assert verdict is not None
    assert verdict.reason == "waited for: build"


@pytest.mark.parametrize("required", [True, False])
def test_a_named_check_has_to_succeed(required: bool) -> None:
    """One that was cancelled says nothing about the head, where the forge lets it pass as well."""
    needs = MergeReaction(require=MergeRequirements(checks=("test",)))
    cancelled = replace(GREEN, state=CheckState.NEUTRAL, required=required)
    view = replace(VIEW, settings=needs, seen=replace(READY, checks=(cancelled,)))
    again = replace(view, seen=replace(READY, checks=(cancelled, GREEN)))

    verdict = first_closed_for_merge(view)

    assert verdict is not None
    assert verdict.reason == "waited for: test"
    assert first_closed_for_merge(again) is None


def test_an_old_head_without_checks_is_merged() -> None:
    """Where nothing checks anything."""
    bare = replace(READY, checks=())
    assert first_closed_for_merge(replace(VIEW, seen=bare, head_age=121.0)) is None


def test_the_train_is_the_last_gate() -> None:
    """And none where the forge has a queue."""
    verdict = first_closed_for_merge(replace(VIEW, ahead="#3"))
    by_forge = replace(VIEW, ahead="#3", seen=replace(READY, has_queue=True))

    assert verdict is not None
    assert verdict.reason == "#3 is merged first"
    assert first_closed_for_merge(by_forge) is None
