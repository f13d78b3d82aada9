"""What is explained is what is decided: the gates of any state, against its next dispatch."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import event, given, settings
from hypothesis import strategies as st

from sortie.model import (
    Blocker,
    HoldReason,
    Issue,
    IssueId,
    RunId,
    Streak,
    Trigger,
    WaitKind,
)
from sortie.scheduler import Policy
from sortie.scheduler.claims import Claim, Held, Rechecking, Running, Starting, Waiting
from sortie.scheduler.dispatch import dispatch, queue
from sortie.scheduler.explanation import Explanation, explain_issue
from sortie.scheduler.state import SchedulerState

NOW = 100.0
NAMES = "abcdef"
TROUBLES = ["paused", "draining", "store", "skipped", "hindrance", "hindrance", "shortage"]
FLAWS: list[dict[str, object]] = [
    {"title": " "},
    {"state": "review"},
    {"state": "done"},
    {"labels": ()},
    {"blocked_by": (Blocker(identifier="B"),)},
    {"blocked_by": (Blocker(identifier="B", state="done"),)},
]


@st.composite
def issues(draw: st.DrawFn, name: str) -> Issue:
    sound = Issue(
        id=IssueId(name),
        identifier=name.upper(),
        title="Mend it",
        state=draw(st.sampled_from(["todo", "Doing "])),
        priority=draw(st.none() | st.integers(0, 5)),
        labels=("Ready",),
    )
    flaw = draw(st.sampled_from([{}, {}, {}, {}, {}, {}, *FLAWS]))
    return replace(sound, **flaw)  # type: ignore[arg-type]


POLICIES = st.builds(
    Policy,
    active_states=st.just(frozenset({"todo", "doing"})),
    terminal_states=st.just(frozenset({"done"})),
    required_labels=st.sampled_from([frozenset(), frozenset({"ready"})]),
    in_progress_state=st.sampled_from([None, "doing"]),
    max_sessions=st.sampled_from([0, 0, 2]),
    max_concurrent_agents=st.integers(1, 6),
    max_by_state=st.sampled_from([{}, {"todo": 1}, {"doing": 2}, {"doing": 0}]),
    hosts=st.sampled_from([("local",), ("north", "south")]),
    max_per_host=st.sampled_from([None, 1, 2]),
)


@st.composite
def claims(draw: st.DrawFn, issue: Issue) -> Claim | None:
    kind = draw(st.sampled_from(["none", "none", "none", "due", "wait", "run", "recheck", "held"]))
    host = draw(st.sampled_from(["local", "north", "south"]))
    waiting = Waiting(
        issue=issue,
        kind=draw(st.sampled_from([WaitKind.RETRY, WaitKind.CONTINUATION])),
        trigger=Trigger.ERROR,
        streak=Streak(failures=1),
        due_at=draw(st.floats(0, NOW)),
        due=kind == "due",
    )
    started = Starting(
        issue=issue,
        run_id=RunId(f"run-{issue.id}"),
        streak=Streak(),
        host=host,
        since=0.0,
        began_in=issue.state,
        bound_for=draw(st.sampled_from([None, "doing"])),
    )
    running = Running(
        issue=issue,
        run_id=RunId(f"run-{issue.id}"),
        streak=Streak(),
        host=host,
        since=0.0,
        began_in=issue.state,
    )
    match kind:
        case "due" | "wait":
            return waiting
        case "run":
            return started if draw(st.booleans()) else running
        case "recheck":
            return Rechecking(issue=issue, token=1, host=host, waited=None)
        case "held":
            reason = draw(st.sampled_from([HoldReason.OPERATOR, HoldReason.AGENT_NOT_FOUND]))
            return Held(issue=issue, reason=reason, detail="", since=0.0)
        case _:
            return None


@st.composite
def states(draw: st.DrawFn) -> SchedulerState:
    trouble = draw(st.sampled_from([None] * 10 + TROUBLES))
    state = SchedulerState(
        policy=draw(POLICIES),
        new_run_id=lambda: RunId("new"),
        epoch=0.0,
        poll_at=NOW,
        reconcile_at=NOW,
        check_workspaces_at=NOW,
        paused=trouble == "paused",
        draining=trouble == "draining",
        store_error="the disk is full" if trouble == "store" else None,
        skipped="the root cannot be written" if trouble == "skipped" else None,
        hindrance="no kiro-cli" if trouble == "hindrance" else None,
        shortage="no more files" if trouble == "shortage" else None,
        unsettled=True,
        token=5,
    )
    for name in NAMES[: draw(st.integers(3, len(NAMES)))]:
        issue = draw(issues(name))
        claim = draw(claims(issue))
        if claim is None or draw(st.booleans()):
            state.queue_up(issue)
        if claim is not None:
            state.claims[issue.id] = claim
        state.sessions[issue.id] = draw(st.sampled_from([0, 1, 1, 2, 3]))
    return state


def told(state: SchedulerState, issue: Issue) -> Explanation:
    explanation = explain_issue(state, issue.id, NOW)
    assert isinstance(explanation, Explanation)
    return explanation


def is_open(explanation: Explanation) -> bool:
    return all(verdict.reason is None for verdict in explanation.gates)


@settings(max_examples=250, derandomize=True)
@given(states())
def test_what_is_explained_is_what_is_decided(state: SchedulerState) -> None:
    """Of the issues in the queue whose gates are all open the first is chosen by the next dispatch;
    none is chosen that has a closed gate; and what has no budget is held exactly where its gate
    says so."""
    order = queue(state)
    before = {issue.id: told(state, issue) for issue in order}
    known = dict(state.claims)

    dispatch(state, NOW)

    chosen = [
        i
        for i, c in state.claims.items()
        if isinstance(c, Rechecking) and not isinstance(known.get(i), Rechecking)
    ]
    ready = [issue.id for issue in order if is_open(before[issue.id])]
    event(f"{min(len(chosen), 3)} chosen of {min(len(ready), 3)} ready")
    assert set(ready[:1]) <= set(chosen) <= set(ready)
    for issue in order:
        gates = {v.gate: v.reason for v in before[issue.id].gates}
        if isinstance(state.claims.get(issue.id), Held):
            assert gates["budget"] is not None
            assert [gates[g] for g in ("complete", "state", "labels", "blockers")] == [None] * 4
        if issue.id not in chosen:
            assert not is_open(told(state, issue))


@settings(max_examples=100, derandomize=True)
@given(states())
def test_the_next_step_never_promises_what_the_gates_deny(state: SchedulerState) -> None:
    """An issue that is told to start next has all gates open, and one with a closed gate is told
    the first of them."""
    for issue in queue(state):
        explanation = told(state, issue)
        closed = [v.reason for v in explanation.gates if v.reason is not None]
        promised = explanation.next_step.startswith("it starts with the next dispatch")

        assert promised == (not closed)
        assert not closed or (closed[0] is not None and closed[0] in explanation.next_step)
