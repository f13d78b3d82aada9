"""What operators ask, wherever the issue stands: the verdict, the words, and what is recorded."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from sortie.model import StopReason, Streak
from sortie.scheduler import Event, Record
from sortie.scheduler import decisions as do
from sortie.scheduler import events as ev
from sortie.scheduler import records as rec
from sortie.scheduler.claims import Running
from tests.scheduler import standings as at
from tests.scheduler.driver import only, starts
from tests.scheduler.lives import Lives

RUN, KEPT = "RunId", "A is held"
STOPPED = "A is being stopped, and is held then"
Standing = Callable[[], Lives]

UNKNOWN = (
    "a neither runs, waits nor is held, and is not among the 0 issues in an active state that the "
    "last poll found (the last poll failed: no preflight has been made yet); look at its spelling, "
    "and in the tracker at its state"
)
CLEANED = "it is Done, and its workspace is being removed"


def by_shutdown() -> Lives:
    return at.stopped_by(StopReason.SHUTDOWN)


def by_operator() -> Lives:
    return at.stopped_by(StopReason.OPERATOR)


def handing_stopped() -> Lives:
    driver = at.handing()
    driver.tell(ev.StopAsked("a"))
    return driver


STOPS: list[tuple[Standing, str, str, list[str]]] = [
    (at.fresh, "unknown", UNKNOWN, []),
    (at.candidate, "done", KEPT, ["RecordHold"]),
    (at.rechecking, "done", KEPT, ["RecordHold"]),
    (at.rechecking_again, "done", KEPT, ["ForgetRetry", "RecordHold"]),
    (at.starting, "done", STOPPED, ["RecordHold"]),
    (at.running, "done", STOPPED, ["RecordHold"]),
    (at.departing, "done", STOPPED, ["RecordHold"]),
    (at.stopping(), "done", STOPPED, ["RecordHold"]),
    (
        at.stopping("Done"),
        "done",
        "A is being stopped; it is Done, so no hold",
        ["RecordHold"],
    ),
    (by_operator, "done", STOPPED, []),
    (by_shutdown, "done", STOPPED, ["RecordHold"]),
    (at.waiting, "done", KEPT, ["ForgetRetry", "RecordHold"]),
    (at.due, "done", KEPT, ["ForgetRetry", "RecordHold"]),
    (
        at.handing,
        "done",
        "A is held if the handoff under way fails",
        ["ForgetRetry", "RecordHold"],
    ),
    (handing_stopped, "done", "A is held if the handoff under way fails", []),
    (at.handing_again, "done", KEPT, ["ForgetRetry", "RecordHold"]),
    (at.held, "done", KEPT, ["RecordHold"]),
    (at.held_by_operator, "done", KEPT, []),
    (at.cleaning, "conflict", "A is Done, and its workspace is being removed", []),
    (at.cleaning_again, "conflict", "A is Done, and its workspace is being removed", []),
]
DUE = "A is due now"
WAITS = ["RecordRetry"]
LET_GO = ["ForgetHold", "ResetBudget", "RecordRetry"]
HANDED = "the handoff of A is tried now"
NOT = "A cannot be retried: "
BUSY = NOT + "its run is being stopped; try again when it is over"
RETRIES: list[tuple[Standing, str, str, list[str]]] = [
    (at.fresh, "unknown", UNKNOWN, []),
    (
        at.candidate,
        "conflict",
        NOT + "it neither waits nor is held, but it is blocked by B-1 (todo)",
        [],
    ),
    (at.rechecking, "conflict", NOT + "it was chosen to run and is being re-read", []),
    (at.rechecking_again, "conflict", NOT + "it was chosen to run and is being re-read", []),
    (at.starting, "conflict", NOT + f"it is running ({RUN})", []),
    (at.running, "conflict", NOT + f"it is running ({RUN})", []),
    (at.departing, "conflict", NOT + f"it is running ({RUN})", []),
    (at.stopping(), "conflict", BUSY, []),
    (by_operator, "conflict", BUSY, []),
    (by_shutdown, "conflict", BUSY, []),
    (at.waiting, "done", DUE, WAITS),
    (at.due, "done", DUE + ", but dispatch is paused", WAITS),
    (at.handing, "conflict", NOT + "its handoff is under way", []),
    (handing_stopped, "conflict", NOT + "its handoff is under way", []),
    (at.handing_again, "done", HANDED, WAITS),
    (at.held, "done", DUE, LET_GO),
    (at.held_by_operator, "done", DUE, LET_GO),
    (at.held_for_handoff, "done", HANDED, LET_GO),
    (at.held_inactive, "conflict", NOT + "its state Todo is not active", []),
    (at.cleaning, "conflict", NOT + CLEANED, []),
    (at.cleaning_again, "done", "the workspace of A is looked at now", []),
]


def told(decisions: list[do.Decision]) -> do.AnswerCommand:
    """Return the only answer."""
    (answer,) = only(decisions, do.AnswerCommand)
    assert isinstance(answer, do.AnswerCommand)
    return answer


def recorded(decisions: list[do.Decision]) -> list[str]:
    """Return the records that stand before the answer, by name."""
    before = decisions[: decisions.index(told(decisions))]
    return [type(d).__name__ for d in before if isinstance(d, Record)]


def said(driver: Lives, text: str) -> str:
    worked = driver.scheduler.snapshot(driver.now).worked
    return text.replace(RUN, worked[0].run_id) if worked else text


def ids(value: object) -> str:
    return getattr(value, "__qualname__", "").split(".")[0]


@pytest.mark.parametrize(("standing", "verdict", "message", "records"), STOPS, ids=ids)
def test_a_stop_is_answered_by_what_it_does(
    standing: Standing, verdict: str, message: str, records: list[str]
) -> None:
    """At every point of an issue's way a stop has its answer, and its records come first."""
    driver = standing()

    decisions = driver.tell(ev.StopAsked("a", 7))

    assert told(decisions) == do.AnswerCommand(7, verdict, message)  # type: ignore[arg-type]
    assert recorded(decisions) == records
    assert starts(driver.settle(decisions)) == []


@pytest.mark.parametrize(("standing", "verdict", "message", "records"), RETRIES, ids=ids)
def test_a_retry_is_answered_by_what_it_does(
    standing: Standing, verdict: str, message: str, records: list[str]
) -> None:
    """At every point of an issue's way a retry has its answer, and its records come first."""
    driver = standing()
    expected = said(driver, message)

    decisions = driver.tell(ev.RetryAsked("a", 7))

    assert told(decisions) == do.AnswerCommand(7, verdict, expected)  # type: ignore[arg-type]
    assert recorded(decisions) == records


ASKS: list[Callable[[int], Event]] = [
    lambda ask: ev.StopAsked("a", ask),
    lambda ask: ev.RetryAsked("a", ask),
    lambda ask: ev.PauseAsked(True, ask),
    lambda ask: ev.PauseAsked(False, ask),
    ev.RefreshRequested,
]


@pytest.mark.parametrize("ask", range(5))
@pytest.mark.parametrize("standing", [row[0] for row in STOPS], ids=ids)
def test_nobody_is_told_who_does_not_wait(standing: Standing, ask: int) -> None:
    """A command without a number does the same, and gives no answer."""
    one, other = standing(), standing()

    quiet = one.tell(ASKS[ask](0))
    loud = other.tell(ASKS[ask](3))

    assert only(quiet, do.AnswerCommand) == []
    assert [d for d in loud if not isinstance(d, do.AnswerCommand)] == quiet
    assert told(loud).ask == 3


@pytest.mark.parametrize("name", ["a", "A"])
@pytest.mark.parametrize("standing", [at.running, at.waiting, at.held, at.candidate], ids=ids)
def test_an_issue_is_known_by_id_and_identifier(standing: Standing, name: str) -> None:
    """Both names find it, claimed or not, and the answer gives the identifier."""
    driver = standing()

    answer = told(driver.tell(ev.StopAsked(name, 1)))

    assert answer.verdict == "done"
    assert answer.message.startswith("A is ")


@pytest.mark.parametrize("name", ["", "b", "a ", "AA"])
def test_what_is_not_known_is_said_with_a_way_to_find_out(name: str) -> None:
    """A name that nothing has is unknown, and the answer says where to look."""
    driver = at.running()

    answers = [told(driver.tell(e)) for e in (ev.StopAsked(name, 1), ev.RetryAsked(name, 1))]

    assert [a.verdict for a in answers] == ["unknown", "unknown"]
    assert all("look at its spelling" in a.message for a in answers)
    assert isinstance(driver.claim(), Running)


def test_a_retry_counts_the_attempts_anew() -> None:
    """The next run is a first attempt, due at once."""
    driver = at.waiting()

    decisions = driver.settle(driver.tell(ev.RetryAsked("a")))

    (retry,) = only(decisions, rec.RecordRetry)
    assert isinstance(retry, rec.RecordRetry)
    assert (retry.streak, retry.delay) == (Streak(), 0.0)
    assert [s.streak for s in starts(decisions)] == [Streak()]
