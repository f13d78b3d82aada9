"""Workspaces of finished issues that hold work which is nowhere else."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from sortie import facts
from sortie.model import LOCAL, Issue, KeptWorkspace, KnownWorkspace
from sortie.scheduler import decisions as do
from sortie.scheduler import events as ev
from sortie.scheduler import records as rec
from sortie.scheduler.claims import Cleaning
from sortie.scheduler.explanation import Explanation
from tests.scheduler import standings as at
from tests.scheduler.driver import only
from tests.scheduler.lives import A, Lives

HOME = KnownWorkspace(issue_id=A, identifier="A", host=LOCAL, path="/a")
KEPT = KeptWorkspace(workspace=HOME, reason="1 unpushed commit")
DAYS = 14 * 86_400.0


def kept_fact(issue: Issue, kept: KeptWorkspace, seconds: float) -> facts.WorkspaceKept:
    return facts.WorkspaceKept(
        issue_id=issue.id,
        issue_identifier=issue.identifier,
        path=kept.workspace.path,
        host=kept.workspace.host,
        reason=kept.reason,
        seconds=seconds,
    )


def claim_of(driver: Lives) -> Cleaning:
    """Return the claim of the issue that is being put away."""
    claim = driver.claim()
    assert isinstance(claim, Cleaning)
    return claim


def wake(driver: Lives) -> list[do.Decision]:
    """Let time pass until the workspace is due."""
    return driver.pass_time(claim_of(driver).due_at - driver.now)


def test_a_workspace_with_work_in_it_is_kept() -> None:
    """It is on record since when, people are told once, and it is known as before."""
    driver = at.cleaning()

    first = driver.tell(ev.WorkspaceCleaned(A, (), kept=(KEPT,)))
    again = wake(driver)
    second = driver.tell(ev.WorkspaceCleaned(A, (), kept=(KEPT,)))

    assert only(first, rec.RecordUnsaved) == [rec.RecordUnsaved(host=LOCAL, path="/a")]
    (told,) = only(first, facts.WorkspaceKept)
    finished = claim_of(driver).issue
    assert told == kept_fact(finished, KEPT, DAYS)
    assert only(again, do.CleanWorkspace) == [do.CleanWorkspace(finished, (HOME,))]
    assert second == []
    assert claim_of(driver).kept == (KEPT,)


def test_it_is_looked_at_less_and_less_often() -> None:
    """After a minute at first, and in the end every hour, as long as the days are not over."""
    driver = at.cleaning()
    pauses = []
    for _ in range(9):
        driver.tell(ev.WorkspaceCleaned(A, (), kept=(KEPT,)))
        before = driver.now
        wake(driver)
        pauses.append(driver.now - before)

    assert pauses == [60, 120, 240, 480, 960, 1920, 3600, 3600, 3600]


def test_it_is_removed_when_the_days_are_over() -> None:
    """Then whatever it holds goes with it, at that moment and not at the next look."""
    driver = at.cleaning()
    driver.tell(ev.WorkspaceCleaned(A, (), kept=(KEPT,)))
    began, issue = driver.now, claim_of(driver).issue
    spared = do.CleanWorkspace(issue, (HOME,))
    while (looked := only(wake(driver), do.CleanWorkspace)) == [spared]:
        driver.tell(ev.WorkspaceCleaned(A, (), kept=(KEPT,)))
    driver.tell(ev.WorkspaceCleaned(A, (HOME,)))

    assert looked == [do.CleanWorkspace(issue, (HOME,), (HOME,))]
    assert driver.now == began + DAYS
    assert driver.claim() is None


def test_a_reload_counts_at_once() -> None:
    """With 0 days it is removed at once, and an operator need not wait for the next look."""
    driver = at.cleaning()
    driver.tell(ev.WorkspaceCleaned(A, (), kept=(KEPT,)))

    driver.tell(ev.PolicyChanged(replace(driver.policy, keep_unsaved=0.0)))
    decisions = wake(driver)

    wanted = do.CleanWorkspace(claim_of(driver).issue, (HOME,), (HOME,))
    assert only(decisions, do.CleanWorkspace) == [wanted]


def test_a_restart_does_not_begin_the_days_anew() -> None:
    """The next life keeps it for what is left of them."""
    driver = at.cleaning()
    driver.tell(ev.WorkspaceCleaned(A, (), kept=(KEPT,)))
    finished = claim_of(driver).issue
    driver.pass_time(DAYS / 2)

    driver.die()
    driver.tell(ev.IssuesRefreshed(0, frozenset({A}), (finished,)))
    driver.settle(driver.pass_time())
    told = driver.tell(ev.WorkspaceCleaned(A, (), kept=(KEPT,)))

    assert only(told, rec.RecordUnsaved) == []
    assert only(told, facts.WorkspaceKept) == [kept_fact(finished, KEPT, DAYS / 2)]


@pytest.mark.parametrize("error", [None, "the host is away"])
def test_an_idle_daemon_does_not_wait_for_it(error: str | None) -> None:
    """It is no work that is left to do."""
    driver = at.cleaning()
    driver.tell(ev.WorkspaceCleaned(A, (), error, (KEPT,)))

    snapshot = driver.scheduler.snapshot(driver.now)

    assert [claim.issue.id for claim in snapshot.kept] == [A]
    assert (claim_of(driver).busy, claim_of(driver).error) == (False, error)


def test_an_explanation_says_what_is_kept() -> None:
    """Where it is, what is in it, and when it is looked at again."""
    driver = at.cleaning()
    driver.tell(ev.WorkspaceCleaned(A, (), kept=(KEPT,)))

    told = driver.scheduler.explain_issue("A", driver.now)

    assert isinstance(told, Explanation)
    assert told.detail == "its workspace /a on local is kept: 1 unpushed commit"
    assert told.next_at == driver.now + 60
    assert "its workspace is kept for the work in it" in [gate.reason for gate in told.gates]
