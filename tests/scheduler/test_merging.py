"""Which pull requests are merged when, and what a refusal means."""

from __future__ import annotations

import pytest

from sortie.model.pull_requests import (
    CheckState,
    Note,
)
from sortie.model.watches import (
    Errand,
    LabelChange,
    PullRequestComment,
)
from sortie.scheduler import Decision
from sortie.scheduler import decisions as do
from sortie.scheduler import events as ev
from sortie.scheduler.watch_standing import WatchStage
from tests.scheduler.driver import EPOCH, only
from tests.scheduler.watching import (
    Watching,
    check,
    merges,
    request,
    stands,
    watch,
)


def tried(watching: Watching, decided: list[Decision], outcome: ev.MergeOutcome) -> list[Decision]:
    """Tell what became of the merge that was decided."""
    (merge,) = only(decided, do.MergePullRequest)
    assert isinstance(merge, do.MergePullRequest)
    return watching.tell(ev.MergeTried(merge.issue.id, merge.token, outcome, "a ruleset"))


def test_a_merge_that_is_refused_again_and_again_is_left_to_a_person() -> None:
    """Who is told once for each head; another head, or a retry, is tried again."""
    watching = Watching(watch("a"))
    errands: list[Errand] = []
    tries = 0
    for _ in range(12):
        decided = watching.look(stands("a"))
        if merges(decided):
            tries += 1
            tried(watching, decided, "refused")
        errands += watching.errands()

    assert tries == 5
    assert [type(errand) for errand in errands] == [LabelChange, PullRequestComment]
    assert watching.standings["a"].stage is WatchStage.NEEDS_PERSON
    assert "a ruleset" in errands[1].body  # type: ignore[union-attr]

    pushed = stands("a", pull_request=request("a", head="a2"))
    watching.look(pushed)
    assert watching.errands() == [LabelChange(remove=("needs-human",))]
    assert merges(watching.look(pushed)) == ["a"]


@pytest.mark.parametrize("by", ["comment", "operator"])
def test_a_retry_has_a_refused_merge_tried_again(by: str) -> None:
    """As it does everything else that was given up; nobody needs to be called for any more."""
    watching = Watching(watch("a"))
    shown = stands("a")
    for _ in range(5):
        tried(watching, watching.look(shown), "refused")
    watching.errands()
    assert merges(watching.look(shown)) == []

    if by == "operator":
        watching.tell(ev.RetryAsked("a", 1))
    else:
        shown = stands("a", comments=(Note(id="1", author="ann", body="/sortie retry"),))
        watching.look(shown)
    errands = watching.errands()

    assert errands[-1] == LabelChange(remove=("needs-human",))
    tried(watching, watching.look(shown), "refused")
    assert watching.standings["a"].stage is WatchStage.WATCHED
    assert merges(watching.look(shown)) == ["a"]


def test_a_head_that_was_given_up_is_so_after_a_restart() -> None:
    """The person who was called for is called for still."""
    watching = Watching(watch("a", causes=("refused:a1",)))

    assert merges(watching.look(stands("a"))) == []
    assert watching.standings["a"].stage is WatchStage.NEEDS_PERSON


def test_a_refused_merge_keeps_no_other_from_its_own() -> None:
    """The train goes on without it at once."""
    watching = Watching(watch("a"), watch("b", since=EPOCH + 1))
    both = (stands("a"), stands("b"))

    first = watching.look(*both)
    tried(watching, first, "refused")
    second = watching.look(*both, seconds=61.0)

    assert merges(first) == ["a"]
    assert merges(second) == ["b"]


def test_a_forge_that_still_computes_conflicts_costs_no_place_in_the_train() -> None:
    """After a base was brought in that is not known for a moment: nothing else is built then."""
    watching = Watching(watch("a"), watch("b", since=EPOCH + 1))
    tried(watching, watching.look(stands("a"), stands("b")), "updated")

    updated = stands("a", pull_request=request("a", head="a2"), conflicts=None)
    decided = watching.look(updated, stands("b"), seconds=61.0)

    assert merges(decided) == []
    assert watching.standings["a"].watch.merging == "a2"


def test_checks_that_never_end_hold_no_train_after_a_restart() -> None:
    """The others wait for two hours, counted anew."""
    waiting = watch("a", merging="a1")
    watching = Watching(waiting, watch("b", since=EPOCH + 1))
    both = (stands("a", checks=(check(1, CheckState.PENDING),)), stands("b"))

    decided = [merges(watching.look(*both)) for _ in range(10)]

    assert decided[0] == []
    assert ["b"] in decided
