"""Stages: what is handed from one to the next, and what ends a chain that no person is part of."""

from __future__ import annotations

from msgspec.structs import replace

from sortie.config.rules import Conditions, StageSettings
from sortie.model import AgentSession, Finish, Finished, HoldReason, RunReport
from sortie.model.stages import PassedStage
from sortie.scheduler import Policy
from sortie.scheduler import decisions as do
from sortie.scheduler import events as ev
from sortie.scheduler.policy import RulePolicy
from tests.scheduler.driver import POLICY, issue, only, starts
from tests.scheduler.lives import Lives


def stage(
    name: str, state: str, to: str, *, when: Conditions | None = None, **keys: str
) -> RulePolicy:
    policy = replace(
        POLICY, active_states=frozenset({state.casefold()}), handoff_state=to, rule=name, max_hops=2
    )
    return RulePolicy(
        name=name, when=when or Conditions(), policy=policy, stage=StageSettings(**keys)
    )


PIPELINE = replace(
    POLICY,
    rules=(
        stage("plan", "To plan", "Plan review"),
        stage("build", "To build", "To check"),
        stage("check", "To check", "Review", conversation="continue"),
    ),
)


class Pipeline(Lives):
    """A daemon whose runs leave a result, and whose handoffs succeed."""

    def __init__(self, policy: Policy = PIPELINE) -> None:
        super().__init__(policy)

    def run(self, state: str, result: str | None, *, die: bool = False) -> do.StartWorker:
        """Let the issue run in a state to its handoff; return how the run was started."""
        started = self.start(issue(state=state))
        (start,) = started
        self.tell(ev.WorkspaceMade(start.run_id, self.known()))
        self.tell(ev.TurnStarted(start.run_id, 1))
        self.tell(ev.AgentSessionKnown(start.run_id, "kiro", f"session of {start.rule}"))
        end = Finished(finish=Finish.DONE)
        report = RunReport(end=end, turns=1, stage_result=result)
        (question,) = only(self.tell(ev.WorkerExited(start.run_id, report)), do.HandOff)
        assert isinstance(question, do.HandOff)
        if die:
            self.die()
            (question,) = only(self.pass_time(), do.HandOff)
            assert isinstance(question, do.HandOff)
        self.put(issue(state=question.state))
        self.settle(
            self.tell(ev.TransitionAnswered(issue().id, question.token, state=question.state))
        )
        self.again()
        return start

    def again(self) -> None:
        """Let the issue start, if it does, as a person has left it."""
        self.settle(self.tell(ev.RefreshRequested()))


def test_the_next_stage_is_told_what_the_one_before_has_left() -> None:
    """Also after a crash between the end of the run and the handoff, and beyond a person."""
    daemon = Pipeline()

    plan = daemon.run("To plan", "the plan", die=True)
    daemon.die()
    build = daemon.run("To build", "it is built")

    assert (plan.rule, plan.previous) == ("plan", None)
    assert build.rule == "build"
    assert build.previous == PassedStage(rule="plan", state="Plan review", result="the plan")


def test_a_run_that_left_nothing_hands_on_nothing() -> None:
    """What a stage before the last one has left is not taken for the last one's."""
    daemon = Pipeline()

    daemon.run("To plan", "the plan")
    daemon.run("To build", "")
    (check,) = [claim.run_id for claim in daemon.scheduler.snapshot(daemon.now).worked]

    assert daemon.disk.recover().stages[issue().id].result == ""
    assert check


def test_a_stage_begins_a_conversation_of_its_own_unless_it_says_otherwise() -> None:
    """A stage with ``conversation: continue`` goes on with that of the stage before."""
    daemon = Pipeline()

    plan = daemon.run("To plan", "the plan")
    build = daemon.run("To build", "it is built")
    told = [claim.rule for claim in daemon.scheduler.snapshot(daemon.now).worked]

    assert (plan.resume, build.resume) == (None, None)
    assert told == ["check"]


def test_a_stage_that_continues_is_given_the_session_of_the_one_before() -> None:
    """It is the newest session of the issue."""
    daemon = Pipeline()
    daemon.run("To build", "it is built")

    daemon.die()
    (start,) = starts(daemon.pass_time(60.0))

    assert (start.rule, start.resume) == (
        "check",
        AgentSession(
            host="local", agent="kiro", workspace="/a", session_id="session of build", rule="build"
        ),
    )


def circle() -> Policy:
    """Return stages that lead round and round, which validation would refuse."""
    return replace(
        POLICY,
        rules=(stage("one", "One", "Two"), stage("two", "Two", "One")),
    )


def passed_by_itself(daemon: Pipeline, most: int = 10) -> list[str]:
    """Let the issue go on by itself; return the stages that it passes."""
    rules = []
    for _ in range(most):
        worked = daemon.scheduler.snapshot(daemon.now).worked
        if not worked:
            break
        (claim,) = worked
        rules.append(claim.rule)
        report = RunReport(end=Finished(finish=Finish.DONE), turns=1)
        (question,) = only(daemon.tell(ev.WorkerExited(claim.run_id, report)), do.HandOff)
        assert isinstance(question, do.HandOff)
        daemon.put(issue(state=question.state))
        answer = ev.TransitionAnswered(issue().id, question.token, state=question.state)
        daemon.settle(daemon.tell(answer))
        daemon.again()
    return rules


def test_a_chain_without_a_person_is_held_and_a_person_lets_it_go_on() -> None:
    """The limit is of hops, not of runs, and holds over a crash; a retry counts anew."""
    daemon = Pipeline(circle())
    daemon.start(issue(state="One"))

    first = passed_by_itself(daemon)
    held = daemon.holds()
    daemon.die()
    still = daemon.holds()
    daemon.settle(daemon.tell(ev.RetryAsked("a")))
    then = passed_by_itself(daemon)

    assert (first, held, still) == (
        ["one", "two", "one"],
        HoldReason.TOO_MANY_STAGES,
        HoldReason.TOO_MANY_STAGES,
    )
    assert then == ["two", "one", "two"]
    assert daemon.holds() is HoldReason.TOO_MANY_STAGES


def test_a_person_between_two_stages_is_no_hop() -> None:
    """Whoever moves the issue elsewhere than Sortie has, is counted as a person."""
    daemon = Pipeline()

    for _ in range(4):
        daemon.run("To plan", "the plan")
        assert daemon.holds() is None

    assert daemon.disk.recover().stages[issue().id].hops == 0


def test_what_is_known_of_stages_ends_with_the_issue() -> None:
    """A terminal issue begins anew if it is ever opened again."""
    daemon = Pipeline()
    daemon.run("To plan", "the plan")

    daemon.put(issue(state="Done"))
    daemon.again()

    assert daemon.disk.recover().stages == {}
