"""How an issue stands, told at every point of its way."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from sortie.model import HoldReason, StopReason
from sortie.scheduler import Explanation
from sortie.scheduler.explanation import IssueStanding
from tests.scheduler import standings as at
from tests.scheduler.lives import Lives
from tests.scheduler.parking import parked

STATE = "a change of its state in the tracker"
CONTENT = "a change of its content in the tracker (title, description, labels; no comment)"
RELOAD = "a reload of the workflow file: a change to it, or SIGHUP"
FOUND = "the agent's program, once it is found"
RETRY, STOP = "sortie retry A", "sortie stop A"
GATES = (
    "complete",
    "state",
    "labels",
    "trust",
    "blockers",
    "claim",
    "budget",
    "rename",
    "dispatch",
    "agent",
    "usage limit",
    "daily budget",
    "workspace size",
    "slot",
    "rule slot",
    "state slot",
    "host slot",
)


def explained(driver: Lives, name: str = "a") -> Explanation:
    explanation = driver.scheduler.explain_issue(name, driver.now)
    assert isinstance(explanation, Explanation)
    return explanation


def by_operator() -> Lives:
    return at.stopped_by(StopReason.OPERATOR)


def ids(value: object) -> str:
    return getattr(value, "__qualname__", "").split(".")[0]


ROWS: list[
    tuple[Callable[[], Lives], IssueStanding, str, float | None, float | None, str, tuple[str, ...]]
] = [
    (
        at.candidate,
        IssueStanding.CANDIDATE,
        "no run of it is planned or under way",
        None,
        None,
        "a poll must find that this has changed: it is blocked by B-1 (todo)",
        (),
    ),
    (
        at.rechecking,
        IssueStanding.STARTING,
        "it was chosen to run and is being re-read",
        None,
        None,
        "it starts when the tracker confirms that it may",
        (),
    ),
    (
        at.starting,
        IssueStanding.STARTING,
        "its run RUN prepares on host local; no turn has begun",
        0.0,
        None,
        "it runs",
        (STOP,),
    ),
    (
        at.running,
        IssueStanding.RUNNING,
        "its run RUN is in turn 2 on host local",
        0.0,
        None,
        "it runs",
        (STOP,),
    ),
    (
        at.departing,
        IssueStanding.RUNNING,
        "its run RUN is in turn 2 on host local; it was moved to Elsewhere, so it ends soon",
        0,
        None,
        "it runs",
        (STOP,),
    ),
    (
        at.stopping(),
        IssueStanding.STOPPING,
        "its run RUN is being stopped (inactive)",
        None,
        None,
        "what follows is decided when its processes are gone",
        (),
    ),
    (
        by_operator,
        IssueStanding.STOPPING,
        "its run RUN is being stopped (operator)",
        None,
        None,
        "what follows is decided when its processes are gone",
        (),
    ),
    (
        at.waiting,
        IssueStanding.WAITING,
        "it waits for its retry, after a failure (1 failure in a row)",
        None,
        10.0,
        "then it is due, and starts when the gates are open",
        (RETRY, STOP),
    ),
    (
        at.due,
        IssueStanding.WAITING,
        "it waits for its retry, after a failure (1 failure in a row)",
        None,
        10.0,
        "dispatch is paused; it is the first of 1 in the queue",
        (RETRY, STOP),
    ),
    (
        at.handing,
        IssueStanding.HANDING_OFF,
        "it is being moved to Review",
        None,
        None,
        "the tracker's answer to the handoff",
        (),
    ),
    (
        at.handing_again,
        IssueStanding.HANDING_OFF,
        "its handoff to Review failed 1 time and is tried again",
        None,
        10.0,
        "the handoff is tried again; the agent does not run for it",
        (RETRY, STOP),
    ),
    (
        at.held,
        IssueStanding.HELD,
        "agent_not_found: no kiro-cli",
        0.0,
        None,
        "it does not run before its hold ends",
        (RETRY, STATE, CONTENT, FOUND, RELOAD),
    ),
    (
        at.held_for_handoff,
        IssueStanding.HELD,
        "handoff_failed: it could not be moved to Review: 422",
        0.0,
        None,
        "it does not run before its hold ends",
        (RETRY, STATE, CONTENT, "another tracker.handoff_state"),
    ),
    (
        at.held_by_operator,
        IssueStanding.HELD,
        "operator: an operator stopped it",
        0.0,
        None,
        "it does not run before its hold ends",
        (RETRY, STATE),
    ),
    (
        at.held_inactive,
        IssueStanding.HELD,
        "operator: an operator stopped it",
        0.0,
        None,
        "it does not run before its hold ends",
        (STATE,),
    ),
    (
        at.cleaning,
        IssueStanding.CLEANING,
        "its workspace is being removed",
        None,
        None,
        "it is finished and does not run again",
        (),
    ),
    (
        at.cleaning_again,
        IssueStanding.CLEANING,
        "its workspace is being removed; the last try failed: directory not empty",
        None,
        None,
        "it is finished and does not run again",
        (),
    ),
]


@pytest.mark.parametrize(
    ("standing_at", "standing", "detail", "since", "next_at", "next_step", "ways_out"),
    ROWS,
    ids=ids,
)
def test_an_issue_is_explained_wherever_it_stands(
    standing_at: Callable[[], Lives],
    standing: IssueStanding,
    detail: str,
    since: float | None,
    next_at: float | None,
    next_step: str,
    ways_out: tuple[str, ...],
) -> None:
    """IssueStanding, detail, times, the next step and the ways out are those of the claim."""
    driver = standing_at()
    worked = driver.scheduler.snapshot(driver.now).worked
    run_id = worked[0].run_id if worked else None

    told = explained(driver)

    assert (told.standing, told.detail) == (standing, detail.replace("RUN", run_id or ""))
    assert (told.since, told.next_at, told.next_step) == (since, next_at, next_step)
    assert told.ways_out == ways_out
    assert told.run_id == run_id
    assert told.turn == (worked[0].turns if worked else None)
    assert tuple(v.gate for v in told.gates) == GATES


@pytest.mark.parametrize(
    ("standing_at", "attempt"),
    [
        (at.candidate, None),
        (at.rechecking, None),
        (at.rechecking_again, 1),
        (at.running, 0),
        (at.waiting, 1),
        (at.due, 1),
        (at.handing, None),
        (at.held, None),
    ],
    ids=ids,
)
def test_the_attempt_is_that_of_the_run_under_way_or_next(
    standing_at: Callable[[], Lives], attempt: int | None
) -> None:
    """Unknown where no run is planned."""
    assert explained(standing_at()).attempt == attempt


@pytest.mark.parametrize("reason", HoldReason)
def test_every_hold_names_its_ways_out(reason: HoldReason) -> None:
    """Each way out is one that ends this hold, and an operator's has the fewest."""
    special = {
        HoldReason.AGENT_NOT_FOUND: RELOAD,
        HoldReason.INVALID_WORKSPACE_CWD: RELOAD,
        HoldReason.ADAPTER_SETTINGS: RELOAD,
        HoldReason.SESSION_BUDGET_EXHAUSTED: "agent.max_sessions above 1, or 0",
        HoldReason.USAGE_BUDGET_EXHAUSTED: (
            "a higher agent.max_tokens, max_credits or max_cost_usd, or 0"
        ),
        HoldReason.HANDOFF_FAILED: "another tracker.handoff_state",
        HoldReason.REACTION_EXHAUSTED: "a push to its pull request by somebody else",
    }
    expected = [RETRY, STATE]
    if reason is HoldReason.QUESTION:
        answers = ["sortie answer A TEXT", "an answer as a comment on the issue"]
        expected = [*answers, f"{RETRY}, which withdraws the question", STATE]
    if reason is not HoldReason.OPERATOR:
        expected.append(CONTENT)
    if reason is HoldReason.AGENT_NOT_FOUND:
        expected.append(FOUND)
    if reason in special:
        expected.append(special[reason])

    assert explained(parked(reason)).ways_out == tuple(expected)
