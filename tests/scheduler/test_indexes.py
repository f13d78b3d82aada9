"""What is looked up quickly is what is there: indexes against what they are made from."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from sortie.model import (
    Blocker,
    HoldReason,
    Issue,
    IssueId,
    RunId,
    StopReason,
    Streak,
    Trigger,
    WaitKind,
)
from sortie.scheduler import events as ev
from sortie.scheduler.claims import (
    Claim,
    Cleaning,
    Departure,
    HandingOff,
    Held,
    Rechecking,
    Running,
    Starting,
    Stopping,
    Waiting,
)
from sortie.scheduler.state import SchedulerState
from tests.scheduler.derivation import assert_derived
from tests.scheduler.driver import POLICY, Driver, issue

NAMES = [IssueId(name) for name in "abcdef"]
TIMES = st.sampled_from([1.0, 2.0, 3.0, 5.0, 8.0])


@st.composite
def _issues(draw: st.DrawFn) -> Issue:
    return issue(
        draw(st.sampled_from(NAMES)),
        draw(st.sampled_from(["todo", " Doing ", "done"])),
        priority=draw(st.sampled_from([None, 1, 2])),
        blocked_by=draw(st.sampled_from([(), (Blocker(identifier="X"),)])),
    )


@st.composite
def _claims(draw: st.DrawFn) -> Claim:
    held = draw(_issues())
    missing = draw(st.sampled_from([None, 4.0]))
    run: dict[str, Any] = {
        "issue": held,
        "missing_since": missing,
        "run_id": RunId(f"run of {held.id} {draw(st.integers(1, 2))}"),
        "streak": Streak(),
        "host": draw(st.sampled_from(["east", "west"])),
        "since": 0.0,
        "began_in": held.state,
    }
    waiting = Waiting(
        issue=held,
        missing_since=missing,
        kind=WaitKind.RETRY,
        trigger=Trigger.ERROR,
        streak=Streak(),
        due_at=draw(TIMES),
        again_at=draw(TIMES),
        due=draw(st.booleans()),
    )
    departure = Departure(reason=StopReason.INACTIVE, sentence="", stop_at=draw(TIMES))
    options: list[Claim] = [
        waiting,
        Starting(**run, bound_for=draw(st.sampled_from([None, "Doing"]))),
        Running(**run, departure=draw(st.sampled_from([None, departure]))),
        Stopping(**run, reason=StopReason.OPERATOR),
        HandingOff(
            issue=held,
            streak=Streak(),
            tries=0,
            token=draw(st.sampled_from([None, 7])),
            due_at=draw(TIMES),
        ),
        Rechecking(issue=held, token=3, host="east", waited=None),
        Cleaning(issue=held, busy=draw(st.booleans()), due_at=draw(TIMES)),
        Held(issue=held, reason=HoldReason.OPERATOR, detail="", since=0.0),
    ]
    return draw(st.sampled_from(options))


_CHANGES = (
    st.tuples(st.just("claim"), _claims())
    | st.tuples(st.just("release"), st.sampled_from(NAMES))
    | st.tuples(st.just("queue"), _issues())
    | st.tuples(st.just("forget"), st.sampled_from(NAMES))
    | st.tuples(st.just("judge"), st.none())
    | st.tuples(st.just("bound for"), st.sampled_from([None, "doing", "todo"]))
    | st.tuples(st.just("poll"), st.lists(_issues(), unique_by=lambda found: found.id))
)


@settings(max_examples=300, derandomize=True)
@given(st.lists(_CHANGES, max_size=40))
def test_indexes_agree_with_the_claims_after_every_change(
    changes: list[tuple[str, object]],
) -> None:
    """Whatever is claimed, released, queued, judged and polled, in whatever order."""
    driver = Driver(replace(POLICY, in_progress_state="doing", max_concurrent_agents=0))
    state = driver.scheduler._state

    for what, thing in changes:
        _change(driver, state, what, thing)
        assert_derived(state)


def _change(driver: Driver, state: SchedulerState, what: str, thing: object) -> None:
    match what, thing:
        case "claim", claim if isinstance(claim, Claim):
            state.claims[claim.issue.id] = claim
        case "release", str(issue_id):
            state.claims.pop(IssueId(issue_id), None)
        case "queue", Issue() as found if found.id not in state.claims:
            state.queue_up(found)
        case "forget", str(issue_id):
            state.candidates.discard(IssueId(issue_id))
        case "judge", None:
            driver.scheduler.snapshot(0.0)
        case "bound for", other if other is None or isinstance(other, str):
            driver.tell(ev.PolicyChanged(replace(state.policy, in_progress_state=other)))
        case "poll", list(found):
            driver.tell(ev.CandidatesFetched(tuple(found)))
        case _:
            pass


@settings(max_examples=200, derandomize=True)
@given(st.data())
def test_a_poll_of_the_same_objects_leaves_what_a_poll_of_equal_ones_leaves(
    data: st.DataObject,
) -> None:
    """What is known of an issue that came as the very same object is what would be found anew."""
    same, anew = Driver(POLICY), Driver(POLICY)
    issues = data.draw(st.lists(_issues(), unique_by=lambda found: found.id))

    for _ in range(4):
        for driver, polled in ((same, issues), (anew, [replace(i) for i in issues])):
            driver.put(*polled)
            decided = driver.settle(driver.tell(ev.CandidatesFetched(tuple(polled))))
            if driver is same:
                expected = decided
        assert [type(d) for d in decided] == [type(d) for d in expected]
        assert same.scheduler.snapshot(0.0) == anew.scheduler.snapshot(0.0)
        assert_derived(same.scheduler._state)
        changed = data.draw(st.lists(_issues(), max_size=2, unique_by=lambda found: found.id))
        ids = {found.id for found in changed}
        issues = [*(i for i in issues if i.id not in ids), *changed]
