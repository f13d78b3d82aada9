"""What is explained is what is decided: the gates of any state, against its next dispatch."""

from __future__ import annotations

from uuid import UUID

from hypothesis import event, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from sortie.model import (
    Blocker,
    HoldReason,
    Issue,
    IssueId,
    KnownWorkspace,
    RunId,
    Streak,
    Trigger,
    WaitKind,
)
from sortie.scheduler import Policy
from sortie.scheduler.claim_table import share_of
from sortie.scheduler.claims import Claim, Held, Rechecking, Running, Starting, Waiting
from sortie.scheduler.dispatch import dispatch, queue
from sortie.scheduler.explanation import Explanation, explain_issue
from sortie.scheduler.gate_view import view_of
from sortie.scheduler.gates import FITNESS, ROOM, closed
from sortie.scheduler.host_gate import free_host
from sortie.scheduler.identifiers import RunIds
from sortie.scheduler.state import SchedulerState
from tests.properties import examples
from tests.scheduler.derivation import assert_derived

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
    {"formerly": (IssueId("a"), IssueId("b"))},
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
    return replace(sound, **flaw)


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
        new_run_id=RunIds(UUID(int=0)),
        epoch=0.0,
        poll_at=NOW,
        reconcile_at=NOW,
        check_workspaces_at=NOW,
        paused=trouble == "paused",
        draining=trouble == "draining",
        store_error="the disk is full" if trouble == "store" else None,
        skipped="the root cannot be written" if trouble == "skipped" else None,
        hindrances={"": "no kiro-cli"} if trouble == "hindrance" else {},
        shortage="no more files" if trouble == "shortage" else None,
        dispatch_needed=True,
        last_request=5,
    )
    for name in NAMES[: draw(st.integers(3, len(NAMES)))]:
        issue = draw(issues(name))
        claim = draw(claims(issue))
        if claim is None or draw(st.booleans()):
            state.queue_up(issue)
        if claim is not None:
            state.claims[issue.id] = claim
        if (home := draw(st.sampled_from([None, None, "local", "north", "south"]))) is not None:
            path = f"/w/{name}"
            state.workspaces.keep(
                KnownWorkspace(issue_id=issue.id, identifier=name, host=home, path=path)
            )
        state.sessions[issue.id] = draw(st.sampled_from([0, 1, 1, 2, 3]))
    return state


def told(state: SchedulerState, issue: Issue) -> Explanation:
    explanation = explain_issue(state, issue.id, NOW)
    assert isinstance(explanation, Explanation)
    return explanation


def is_open(explanation: Explanation) -> bool:
    return all(verdict.reason is None for verdict in explanation.gates)


@settings(max_examples=examples(100, 250), derandomize=True)
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


def decided_simply(state: SchedulerState) -> tuple[list[IssueId], dict[IssueId, str]]:
    """Return who is chosen, and why each due wait that is not goes on waiting: each issue is looked
    at in its turn, whatever is known of others."""
    view, policy = view_of(state, NOW), state.policy
    chosen, reasons = list[IssueId](), dict[IssueId, str]()
    for issue in queue(state):
        stands_still = state.paused or state.store_error or state.skipped
        full = view.load.total >= policy.max_concurrent_agents
        if issue.id not in state.claims and (stands_still or full):
            continue
        unfit = closed(FITNESS, issue, view)
        if unfit is None and state.over_budget(issue):
            continue
        reason, host = unfit or closed(ROOM, issue, view), free_host(issue, view)
        if reason is None and host is not None:
            view.load.add(share_of(issue, host, policy.in_progress_state, ""))
            chosen.append(issue.id)
        elif issue.id in state.claims:
            reasons[issue.id] = reason or ""
    return chosen, reasons


@settings(max_examples=examples(100, 300), derandomize=True)
@given(states(), st.lists(st.sampled_from([None, *TROUBLES]), min_size=2, max_size=2))
def test_what_is_passed_over_unseen_would_not_have_been_chosen(
    state: SchedulerState, troubles: list[str | None]
) -> None:
    """Those are chosen, and due waits are given those reasons, that looking at each issue in its
    turn would give; also when others have come up since the dispatch before, which is remembered.
    """
    for trouble in (None, *troubles):
        if trouble is not None:
            state.paused = trouble == "paused"
            state.shortage = "no more threads" if trouble == "shortage" else None
        if state.draining:
            return
        known = dict(state.claims)
        chosen, reasons = decided_simply(state)
        state.dispatch_needed = True

        dispatch(state, NOW)

        asked = [
            i
            for i, c in state.claims.items()
            if isinstance(c, Rechecking) and c is not known.get(i)
        ]
        due = {c.issue.id: c.reason for _, c in state.claims.due_in_order()}
        event(f"{min(len(chosen), 3)} chosen, {min(len(due), 3)} wait")
        assert sorted(asked) == sorted(chosen)
        assert due == reasons
        assert_derived(state)


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
