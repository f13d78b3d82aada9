"""Remote hosts: placed evenly, rested when in trouble, and never at an issue's cost."""

from __future__ import annotations

from msgspec.structs import replace

from sortie import facts
from sortie.config.rules import Conditions
from sortie.model import (
    ErrorKind,
    Failed,
    HoldReason,
    KnownWorkspace,
    ProcessIdentity,
    RunStatus,
    Streak,
)
from sortie.scheduler import Memory
from sortie.scheduler import decisions as do
from sortie.scheduler import events as ev
from sortie.scheduler import records as rec
from sortie.scheduler.claims import Held, Waiting
from sortie.scheduler.explanation import Explanation, IssueStanding
from sortie.scheduler.policy import RulePolicy
from tests.scheduler.driver import POLICY, Driver, issue, only, starts

THREE = replace(POLICY, hosts=("east", "west", "north"))
LOST = Failed(kind=ErrorKind.PORT_EXIT, message="lost", adrift=True)
EVICTED = Failed(kind=ErrorKind.PORT_EXIT, message="evicted", disrupted=True)
UNREACHED = Failed(kind=ErrorKind.PORT_EXIT, message="east refused", unreached=True)
NO_AGENT = Failed(kind=ErrorKind.AGENT_NOT_FOUND, message="no kiro-cli")


def claim_of(driver: Driver, name: str = "a") -> object:
    return driver.scheduler.snapshot(driver.now).claims.get(issue(name).id)


def home(name: str, host: str) -> KnownWorkspace:
    return KnownWorkspace(
        issue_id=issue(name).id, identifier=name.upper(), host=host, path=f"/w/{name}"
    )


def test_an_unreached_host_costs_no_attempt() -> None:
    """The issue starts elsewhere at once with the attempt it had; the host is rested and told."""
    driver = Driver(THREE)
    (run,) = driver.start(issue())

    decisions = driver.end(run.run_id, UNREACHED)

    (again,) = starts(driver.pass_time())
    assert run.host == "east"
    assert again.host != "east"
    assert again.streak.failures == 0
    assert only(decisions, facts.HostPaused) == [
        facts.HostPaused(host="east", error="east refused", seconds=10.0)
    ]


def test_a_host_is_not_tried_before_it_can_be_used() -> None:
    """Where it is known when that is, the pause is no shorter; one that is under way is prolonged,
    and its reason is the one that is told."""
    driver = Driver(replace(POLICY, hosts=("east",)))
    driver.tell(ev.HostTroubled("east", "refused"))
    decisions = driver.tell(ev.HostTroubled("east", "another daemon has it", 30.5))
    driver.tell(ev.HostTroubled("east", "refused again", 20.0))
    begun = driver.start(issue())
    explanation = driver.scheduler.explain_issue("A", driver.now)
    driver.now += 30
    early = starts(driver.pass_time())
    driver.now += 1
    (run,) = starts(driver.pass_time())

    assert only(decisions, facts.HostPaused) == [
        facts.HostPaused(host="east", error="another daemon has it", seconds=30.5)
    ]
    assert (begun, early) == ([], [])
    assert isinstance(explanation, Explanation)
    assert "; east: another daemon has it; " in explanation.next_step
    assert explanation.next_at == 30.5
    assert run.streak.failures == 0


def test_all_hosts_in_trouble_mean_waiting_and_the_reason_is_told() -> None:
    """The wait says which host is what, and when the first is tried again."""
    driver = Driver(replace(POLICY, hosts=("east", "west")))
    driver.tell(ev.HostTroubled("east", "refused"))
    driver.now += 5
    driver.tell(ev.HostTroubled("west", "no such key"))
    driver.start(issue())

    explanation = driver.scheduler.explain_issue("A", driver.now)

    assert isinstance(explanation, Explanation)
    assert explanation.next_step.startswith(
        "no host is free (east rests after trouble, west rests after trouble);"
        " east: refused; west: no such key"
    )
    assert explanation.next_at == 10
    assert driver.scheduler.wakeup_at() == 10


def test_a_due_retry_is_told_when_its_host_is_tried_again() -> None:
    """Its own time has passed, so it is the host's that counts."""
    driver = Driver(replace(POLICY, hosts=("east",)))
    (run,) = driver.start(issue())
    driver.end(run.run_id, Failed(kind=ErrorKind.TURN_FAILED, message="it broke"))
    driver.now += 9
    driver.tell(ev.HostTroubled("east", "refused"))
    driver.pass_time(1)

    explanation = driver.scheduler.explain_issue("A", driver.now)

    assert isinstance(explanation, Explanation)
    assert explanation.standing is IssueStanding.WAITING
    assert (driver.now, explanation.next_at) == (10, 19)


def test_a_workspace_in_which_nothing_ran_ties_no_issue_to_a_host_in_trouble() -> None:
    """The run that made it could not go on there; the issue goes elsewhere at once."""
    driver = Driver(replace(THREE, hosts=("east", "west")))
    (first,) = driver.start(issue())
    driver.tell(ev.WorkspaceMade(first.run_id, home("a", "east"), True))

    driver.end(first.run_id, UNREACHED)
    moved = starts(driver.pass_time())

    assert first.host == "east"
    assert [(start.host, start.streak.failures) for start in moved] == [("west", 0)]


def test_a_host_that_was_removed_keeps_nobody() -> None:
    """A reload without it lets the issue begin anew on another; its run there goes on."""
    memory = Memory(workspaces=(home("b", "east"),))
    driver = Driver(replace(THREE, hosts=("east", "west"), max_per_host=1), memory)
    (run,) = driver.start(issue("a"))
    driver.start(issue("b"))

    changed = driver.tell(ev.PolicyChanged(replace(THREE, hosts=("west",))))
    begun = starts(driver.settle(changed))

    assert [(start.issue.id, start.host) for start in begun] == [("b", "west")]
    assert only(changed, do.StopWorker) == []
    assert driver.scheduler.snapshot(driver.now).claims[run.issue.id] is not None


def test_a_missing_program_holds_only_when_no_host_has_it() -> None:
    """Each host that lacks it is rested; the issue goes on, and is held after the last."""
    driver = Driver(replace(POLICY, hosts=("east", "west")))
    (first,) = driver.start(issue())

    moved = driver.end(first.run_id, NO_AGENT)
    (second,) = starts(driver.pass_time())
    held = driver.end(second.run_id, NO_AGENT)

    assert only(moved, rec.RecordHold) == []
    assert {first.host, second.host} == {"east", "west"}
    claim = claim_of(driver)
    assert isinstance(claim, Held)
    assert claim.reason is HoldReason.AGENT_NOT_FOUND
    assert starts(held) == []


def test_an_agent_that_starts_on_a_host_that_lacked_it_frees_who_was_held_for_it() -> None:
    """Somebody has installed it there: what no host could run is tried again."""
    driver = Driver(replace(POLICY, hosts=("east", "west")))
    (first,) = driver.start(issue("a"))
    driver.end(first.run_id, NO_AGENT)
    (second,) = starts(driver.pass_time())
    driver.end(second.run_id, NO_AGENT)
    held = claim_of(driver)

    driver.pass_time(60)
    (other,) = driver.start(issue("b"))
    driver.tell(ev.ProcessLaunched(other.run_id, ProcessIdentity(pid=7, started_at=1.0)))

    assert isinstance(held, Held)
    assert not isinstance(claim_of(driver), Held)


def test_a_lost_link_is_waited_out() -> None:
    """The retry comes when nothing of the run can live any more: lease, grace, five seconds."""
    driver = Driver(THREE)
    (run,) = driver.start(issue())

    driver.end(run.run_id, LOST)

    claim = claim_of(driver)
    assert isinstance(claim, Waiting)
    assert claim.streak == Streak(interruptions=1)
    assert claim.due_at - driver.now == 30 + THREE.stop_grace + 5


def test_only_a_second_lost_link_in_a_row_counts_as_a_failure() -> None:
    """The first costs neither an attempt nor a session; an agent that brings its host down each
    time is tried with growing pauses all the same."""
    driver = Driver(replace(THREE, max_sessions=2))
    seen = []

    for _ in range(2):
        (run,) = driver.start(issue()) or starts(driver.pass_time(600))
        driver.tell(ev.TurnStarted(run.run_id, 1))
        driver.end(run.run_id, LOST)
        claim = claim_of(driver)
        assert isinstance(claim, Waiting)
        seen.append(claim.streak)
    (third,) = starts(driver.pass_time(600))
    driver.tell(ev.TurnStarted(third.run_id, 1))
    driver.end(third.run_id, LOST)
    after = claim_of(driver)

    assert seen == [Streak(interruptions=1), Streak(failures=1)]
    assert isinstance(after, Waiting)
    assert after.streak == Streak(failures=1, interruptions=1)


def test_a_lost_pod_rests_nobody_else() -> None:
    """Its run is interrupted and goes on at once with its attempt, untold; only a second in a row
    is a failure. The host takes other runs all the while."""
    policy = replace(POLICY, hosts=("east",), max_sessions=2, comment_on_failure=True)
    driver = Driver(policy)
    told, records, seen = [], [], []

    (run,) = driver.start(issue())
    for _ in range(2):
        driver.tell(ev.TurnStarted(run.run_id, 1))
        decisions = driver.end(run.run_id, EVICTED)
        records += [one.status for one in decisions if isinstance(one, rec.RecordExit)]
        told.append(len(only(decisions, do.PostComment)))
        claim = claim_of(driver)
        assert isinstance(claim, Waiting)
        seen.append(claim.streak)
        assert only(decisions, facts.HostPaused) == []
        assert not driver.scheduler.snapshot(driver.now).troubled
        (run,) = starts(driver.pass_time(0 if len(seen) == 1 else 600))

    assert records == [RunStatus.INTERRUPTED, RunStatus.FAILED]
    assert seen == [Streak(interruptions=1), Streak(failures=1)]
    assert told == [0, 1]


def test_free_slots_are_those_that_hosts_have() -> None:
    """A host that rests has none, and one that comes back one; all hosts bound the whole."""
    driver = Driver(replace(THREE, max_concurrent_agents=10, max_per_host=2))
    driver.start(issue("a"))
    seen = []

    def look() -> None:
        shown = driver.scheduler.snapshot(driver.now)
        seen.append((shown.free, {host: shown.free_on(host) for host in THREE.hosts}))

    look()
    driver.tell(ev.HostTroubled("west", "refused"))
    look()
    driver.pass_time(10)
    look()

    assert seen == [
        (5, {"east": 1, "west": 2, "north": 2}),
        (3, {"east": 1, "west": 0, "north": 2}),
        (4, {"east": 1, "west": 1, "north": 2}),
    ]


WITH_TWO_AGENTS = replace(
    POLICY,
    hosts=("east",),
    rules=(
        RulePolicy(
            name="other",
            when=Conditions(labels=("other",)),
            policy=replace(
                POLICY, hosts=("east",), agent="claude-code", account="claude-code", rule="other"
            ),
        ),
    ),
)


def test_a_host_without_one_agents_program_works_for_the_other() -> None:
    """The missing program parks the issue of its rule; the host takes runs of the other agent."""
    driver = Driver(WITH_TWO_AGENTS)
    (run,) = driver.start(issue())
    driver.end(run.run_id, NO_AGENT)

    (other,) = driver.start(issue("b", labels=("other",)))

    assert isinstance(claim_of(driver), Held)
    assert (other.host, other.rule) == ("east", "other")
    assert driver.scheduler.snapshot(driver.now).trouble_of("east") is None


def test_an_agent_that_is_launched_says_nothing_of_another_that_is_missing() -> None:
    """Only the launch of the agent itself ends its trouble, and the hold of its issues."""
    driver = Driver(WITH_TWO_AGENTS)
    (run,) = driver.start(issue())
    driver.end(run.run_id, NO_AGENT)
    (other,) = driver.start(issue("b", labels=("other",)))

    decisions = driver.tell(
        ev.ProcessLaunched(other.run_id, ProcessIdentity(pid=1, started_at=1.0))
    )

    assert not only(decisions, facts.HostBack)
    assert isinstance(claim_of(driver), Held)


def test_a_missing_agent_is_tried_beside_the_runs_of_another() -> None:
    """One run at a time finds out after the pause; the others are not waited for."""
    driver = Driver(WITH_TWO_AGENTS)
    (run,) = driver.start(issue())
    driver.end(run.run_id, NO_AGENT)
    (other,) = driver.start(issue("b", labels=("other",)))
    driver.pass_time(400)

    tried = driver.start(issue("c"), issue("d"))

    assert (other.host, [start.host for start in tried]) == ("east", ["east"])


def test_a_host_that_fails_is_in_trouble_for_all_agents() -> None:
    """Also while it rests for one whose program is missing; once reached it is so for the rest."""
    driver = Driver(WITH_TWO_AGENTS)
    (run,) = driver.start(issue())
    driver.end(run.run_id, NO_AGENT)

    driver.tell(ev.HostTroubled("east", "refused"))
    assert driver.start(issue("b", labels=("other",))) == []
    back = driver.settle(driver.tell(ev.HostReached("east")))

    assert only(back, facts.HostBack)
    assert [start.rule for start in starts(back)] == ["other"]
    assert isinstance(claim_of(driver), Held)
