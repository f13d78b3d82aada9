"""Whatever happens, in whatever order, the invariants of the world hold."""

from __future__ import annotations

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from sortie.model import (
    Blocker,
    ErrorKind,
    Failed,
    Finish,
    Finished,
    Issue,
    IssueId,
    RunEnd,
    RunId,
    RunReport,
    RunStatus,
    Stopped,
    TrackerErrorKind,
)
from sortie.scheduler import Policy
from sortie.scheduler import events as ev
from tests.sim.world import World

IDS = st.sampled_from([IssueId(c) for c in "abcd"])
STATES = st.sampled_from(["todo", " ToDo ", "doing", "review", "done"])
POLICIES = st.builds(
    Policy,
    active_states=st.just(frozenset({"todo", "doing"})),
    terminal_states=st.just(frozenset({"done"})),
    required_labels=st.sampled_from([frozenset(), frozenset({"ready"})]),
    in_progress_state=st.sampled_from([None, "doing"]),
    handoff_state=st.sampled_from([None, "review"]),
    max_sessions=st.sampled_from([0, 1, 2]),
    max_concurrent_agents=st.integers(1, 3),
    max_by_state=st.sampled_from([{}, {"todo": 1}, {"doing": 1}]),
)
ENDS: st.SearchStrategy[RunEnd] = st.one_of(
    st.just(Stopped()),
    st.builds(Finished, finish=st.sampled_from(Finish)),
    st.builds(
        Failed,
        kind=st.sampled_from(ErrorKind),
        message=st.just("it broke"),
        status=st.sampled_from(
            [RunStatus.FAILED, RunStatus.TIMED_OUT, RunStatus.STALLED, RunStatus.CANCELLED]
        ),
    ),
)


class Scheduling(RuleBasedStateMachine):
    """Odd orders of events, shrunk to the shortest that breaks something."""

    def __init__(self) -> None:
        super().__init__()
        self.world = World(
            Policy(
                active_states=frozenset({"todo", "doing"}),
                terminal_states=frozenset({"done"}),
                handoff_state="review",
                max_concurrent_agents=2,
            )
        )
        self.world.advance(0.001)

    @rule(
        issue_id=IDS,
        state=STATES,
        priority=st.none() | st.integers(0, 6),
        blocker=st.none() | IDS,
        labels=st.sampled_from([(), ("Ready",)]),
    )
    def edit(
        self,
        issue_id: IssueId,
        state: str,
        priority: int | None,
        blocker: IssueId | None,
        labels: tuple[str, ...],
    ) -> None:
        known = self.world.issues.get(blocker) if blocker else None
        blockers = [Blocker(identifier="B", state=known.state if known else None)]
        self.world.issues[issue_id] = Issue(
            id=issue_id,
            identifier=issue_id.upper(),
            title="Mend it",
            state=state,
            priority=priority,
            labels=labels,
            blocked_by=tuple(blockers) if blocker else (),
        )

    @rule(issue_id=IDS)
    def lose(self, issue_id: IssueId) -> None:
        self.world.issues.pop(issue_id, None)

    @rule(seconds=st.floats(0.01, 4000))
    def time_passes(self, seconds: float) -> None:
        self.world.advance(seconds)

    @rule()
    def next_deadline_comes(self) -> None:
        self.world.next_deadline()

    @precondition(lambda self: self.world.questions)
    @rule(data=st.data(), error=st.none() | st.sampled_from(TrackerErrorKind))
    def an_answer_is_made_up(self, data: st.DataObject, error: TrackerErrorKind | None) -> None:
        self.world.serve(data.draw(st.sampled_from(self.world.questions)), error=error)

    @precondition(lambda self: self.world.questions)
    @rule(data=st.data())
    def an_answer_comes(self, data: st.DataObject) -> None:
        self.world.deliver(data.draw(st.sampled_from(self.world.questions)))

    @rule()
    def everybody_answers(self) -> None:
        for question in list(self.world.questions):
            self.world.deliver(question)

    def some_run(self, data: st.DataObject) -> RunId:
        return data.draw(st.sampled_from(sorted(self.world.workers)))

    @precondition(lambda self: self.world.workers)
    @rule(data=st.data())
    def a_worker_works(self, data: st.DataObject) -> None:
        run_id = self.some_run(data)
        if self.world.workers[run_id].stopping is None:
            self.world.take_turn(run_id)

    @precondition(lambda self: self.world.workers)
    @rule(data=st.data())
    def a_worker_reads(self, data: st.DataObject) -> None:
        self.world.reread(self.some_run(data))

    @precondition(lambda self: self.world.workers)
    @rule(data=st.data(), end=ENDS)
    def a_worker_leaves(self, data: st.DataObject, end: RunEnd) -> None:
        run_id = self.some_run(data)
        self.world.leave(run_id, RunReport(end=end, turns=self.world.workers[run_id].turns))

    @rule(number=st.integers(0, 99))
    def a_ghost_leaves(self, number: int) -> None:
        before = self.world.claims()
        ghost = ev.WorkerExited(RunId(f"ghost-{number}"), RunReport(end=Stopped()))
        assert self.world.tell(ghost) == []
        assert self.world.claims() == before

    @rule(policy=POLICIES)
    def settings_change(self, policy: Policy) -> None:
        self.world.policy = policy
        self.world.tell(ev.PolicyChanged(policy))

    @rule(issue_id=IDS)
    def an_operator_stops(self, issue_id: IssueId) -> None:
        self.world.tell(ev.StopAsked(issue_id))

    @rule(issue_id=IDS)
    def an_operator_retries(self, issue_id: IssueId) -> None:
        self.world.retry(issue_id)

    @rule(paused=st.booleans())
    def an_operator_pauses(self, paused: bool) -> None:
        self.world.tell(ev.PauseAsked(paused))

    @rule(hindrance=st.sampled_from([None, "kiro-cli was not found"]))
    def the_program_comes_and_goes(self, hindrance: str | None) -> None:
        self.world.hindrance = hindrance

    @rule(shortage=st.sampled_from([None, "no more files"]))
    def the_machine_runs_short(self, shortage: str | None) -> None:
        self.world.shortage = shortage

    @precondition(lambda self: len(self.world.log) > 25)
    @rule()
    def the_daemon_is_killed(self) -> None:
        self.world.replay()
        self.world.crash()

    # Late, or most examples would be about shutting down an idle scheduler.
    @precondition(lambda self: not self.world.draining and len(self.world.log) > 25)
    @rule()
    def shut_down(self) -> None:
        self.world.tell(ev.ShutdownRequested())

    @invariant()
    def the_rules_hold(self) -> None:
        self.world.check()

    def teardown(self) -> None:
        self.world.replay()


Scheduling.TestCase.settings = settings(max_examples=150, stateful_step_count=50, derandomize=True)
TestScheduling = Scheduling.TestCase
