"""What ends a hold, and what does not: every reason, in the life that made it and in the next."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime

import pytest
from msgspec.structs import replace

from sortie import facts
from sortie.model import Blocker, Comment, ErrorKind, Failed, HoldReason
from sortie.scheduler import Policy
from sortie.scheduler import decisions as do
from sortie.scheduler import events as ev
from sortie.scheduler.claims import Cleaning, Held
from tests.scheduler.driver import Driver, issue, only, starts
from tests.scheduler.lives import Lives
from tests.scheduler.parking import PARKING, edit, parked

REASONS = tuple(HoldReason)
CONFIGURATION = (
    HoldReason.AGENT_NOT_FOUND,
    HoldReason.INVALID_WORKSPACE_CWD,
    HoldReason.ADAPTER_SETTINGS,
)
LIVES = pytest.mark.parametrize("reborn", [False, True], ids=["same life", "next life"])
every_reason = pytest.mark.parametrize("reason", REASONS)

CONTENT: list[dict[str, object]] = [
    {"identifier": "A-2"},
    {"title": "Mend it well"},
    {"description": "now with details"},
    {"priority": 1},
    {"labels": ("urgent",)},
    {"assignee": "kim"},
    {"issue_type": "bug"},
    {"branch_name": "mend-a"},
    {"parent": "EPIC-1"},
    {"blocked_by": (Blocker(identifier="B-1", state="done"),)},
]
NO_CHANGE: list[dict[str, object]] = [
    {"comments": (Comment(author="kim", body="why?"),)},
    {"updated_at": datetime(2026, 7, 1, tzinfo=UTC)},
    {"created_at": datetime(2026, 1, 2, tzinfo=UTC)},
    {"url": "https://tracker.example/a"},
    {"state": " DOING "},
]


def every_reason_and(changes: list[dict[str, object]]) -> pytest.MarkDecorator:
    """Try a hold of every reason with the first change, and every change with two reasons.

    How a change is known has nothing to do with why the issue is held.
    """
    often = (HoldReason.OPERATOR, HoldReason.AGENT_BLOCKED)
    pairs = [
        pytest.param(
            reason,
            change,
            marks=() if reason in often or change is changes[0] else pytest.mark.full,
            id=f"{reason}-{','.join(change)}",
        )
        for change in changes
        for reason in REASONS
    ]
    return pytest.mark.parametrize(("reason", "changes"), pairs)


def daemon(reason: HoldReason, *, reborn: bool) -> Lives:
    driver = parked(reason)
    if reborn:
        driver.die()
        driver.pass_time()
    return driver


@LIVES
@every_reason_and(NO_CHANGE)
def test_what_is_no_change_of_state_or_content_ends_no_hold(
    reason: HoldReason, changes: dict[str, object], reborn: bool
) -> None:
    """Comments, times, links and another spelling of the state end no hold, however often read."""
    driver = daemon(reason, reborn=reborn)
    edit(driver, **changes)

    decisions = driver.pass_time(30) + driver.pass_time(30)

    assert driver.holds() is reason
    assert starts(decisions) == []


@LIVES
@every_reason_and(CONTENT)
def test_a_change_of_content_ends_every_hold_but_an_operators(
    reason: HoldReason, changes: dict[str, object], reborn: bool
) -> None:
    """Whatever a person edits lets the issue go, and it runs with a fresh budget and attempt; an
    operator's word outlasts it."""
    driver = daemon(reason, reborn=reborn)
    changed = edit(driver, **changes)

    decisions = driver.pass_time(30)

    if reason is HoldReason.OPERATOR:
        assert driver.holds() is reason
        assert starts(decisions) == []
    else:
        assert only(decisions, facts.HoldEnded) == [
            facts.HoldEnded(issue=issue(state="Doing"), reason="its content changed")
        ]
        assert [(s.issue, s.streak.failures) for s in starts(decisions)] == [(changed, 0)]
        assert (driver.disk.holds, driver.disk.sessions, driver.disk.crashes) == ({}, {}, {})


@every_reason
def test_labels_and_blockers_in_another_order_are_no_change(reason: HoldReason) -> None:
    """The order of labels and blockers, the labels' case, and blockers' states mean nothing."""
    one, two = Blocker(identifier="B-1", state="todo"), Blocker(identifier="B-2", state="done")
    driver = parked(reason)
    edit(driver, labels=("x", "Y"), blocked_by=(one, two))
    driver.pass_time(30)
    driver.settle(driver.tell(ev.StopAsked("a")))
    for run in driver.scheduler.snapshot(driver.now).worked:
        driver.end(run.run_id)
    before = driver.holds()
    edit(driver, labels=("y", "X "), blocked_by=(two, replace(one, state="done")))

    driver.pass_time(30)

    assert driver.holds() is before is HoldReason.OPERATOR


@LIVES
@every_reason
def test_a_terminal_state_ends_every_hold_and_the_workspace_goes(
    reason: HoldReason, reborn: bool
) -> None:
    """A held issue that is finished keeps neither a hold nor a workspace nor a budget."""
    driver = daemon(reason, reborn=reborn)
    done = edit(driver, state="Done")

    decisions = driver.pass_time(30)

    assert only(decisions, do.CleanWorkspace) == [do.CleanWorkspace(done, (driver.known(),))]
    assert isinstance(driver.claim(), Cleaning)
    assert (driver.disk.holds, driver.disk.sessions) == ({}, {})


@every_reason
def test_a_state_that_becomes_terminal_ends_every_hold(reason: HoldReason) -> None:
    """What new settings call terminal is finished, though nobody moved it."""
    driver = parked(reason)
    policy = replace(
        PARKING, active_states=frozenset({"todo"}), terminal_states=frozenset({"doing"})
    )

    decisions = driver.tell(ev.PolicyChanged(policy))
    decisions += driver.pass_time() + driver.pass_time(3600)  # when all workspaces are looked at

    assert len(only(decisions, do.CleanWorkspace)) == 1
    assert driver.holds() is None


@LIVES
@every_reason
def test_a_vanished_issue_is_held_until_two_reads_missed_it(
    reason: HoldReason, reborn: bool
) -> None:
    """One read that misses a held issue ends nothing; a second, 5 s later, ends the hold."""
    driver = daemon(reason, reborn=reborn)
    driver.tracker.clear()

    driver.pass_time(30)
    first = driver.holds()
    driver.pass_time(5)

    assert first is reason
    assert (driver.holds(), driver.claim()) == (None, None)


RELOADS: list[tuple[str, Callable[[Policy], Policy], set[HoldReason]]] = [
    ("unchanged", lambda p: p, set()),
    ("poll interval", lambda p: replace(p, poll_interval=10.0), set()),
    ("raised", lambda p: replace(p, max_sessions=2), {HoldReason.SESSION_BUDGET_EXHAUSTED}),
    ("removed", lambda p: replace(p, max_sessions=0), {HoldReason.SESSION_BUDGET_EXHAUSTED}),
    ("handoff", lambda p: replace(p, handoff_state="QA"), {HoldReason.HANDOFF_FAILED}),
    ("no handoff", lambda p: replace(p, handoff_state=None), {HoldReason.HANDOFF_FAILED}),
]


@LIVES
@every_reason
@pytest.mark.parametrize(("name", "change", "ends"), RELOADS, ids=[r[0] for r in RELOADS])
def test_a_reload_ends_the_holds_whose_cause_it_may_have_mended(
    reason: HoldReason,
    name: str,
    change: Callable[[Policy], Policy],
    ends: set[HoldReason],
    reborn: bool,
) -> None:
    """Any reload ends holds for the configuration; a raised or removed limit those for the budget;
    another handoff state those for the handoff; and no reload any other."""
    driver = daemon(reason, reborn=reborn)

    driver.tell(ev.PolicyChanged(change(PARKING)))

    ended = reason in ends or reason in CONFIGURATION
    assert driver.holds() is (None if ended else reason)


def test_a_program_that_appears_ends_the_holds_for_want_of_it() -> None:
    """The poll that finds the program lets the issue go; one that found it all along does not."""
    driver = Driver()
    (run,) = driver.start(issue())
    missing = Failed(kind=ErrorKind.AGENT_NOT_FOUND, message="no kiro-cli")
    driver.end(run.run_id, missing)
    driver.tell(ev.CandidatesFetched((issue(),)))
    still = driver.scheduler.snapshot(driver.now).claims
    driver.tell(ev.CandidatesFetched((issue(),), "no kiro-cli"))
    without = driver.scheduler.snapshot(driver.now).claims

    decisions = driver.tell(ev.CandidatesFetched((issue(),)))

    assert isinstance(still[issue().id], Held)
    assert isinstance(without[issue().id], Held)
    assert [d.reason for d in decisions if isinstance(d, facts.HoldEnded)] == [
        "the agent's program is found"
    ]
    assert len(only(decisions, do.Refresh)) == 1
