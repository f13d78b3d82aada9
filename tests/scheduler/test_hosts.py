"""Remote hosts: placed evenly, rested when in trouble, and never at an issue's cost."""

from __future__ import annotations

from dataclasses import replace

import pytest

from sortie import facts
from sortie.model import ErrorKind, Failed, HoldReason, KnownWorkspace, ProcessIdentity, Streak
from sortie.scheduler import Memory
from sortie.scheduler import decisions as do
from sortie.scheduler import events as ev
from sortie.scheduler import records as rec
from sortie.scheduler.claims import Held, Waiting
from sortie.scheduler.explanation import Explanation, Standing
from sortie.scheduler.hosts import PATIENCE, Hosts
from tests.scheduler.driver import POLICY, Driver, issue, only, starts

THREE = replace(POLICY, hosts=("east", "west", "north"))
LOST = Failed(kind=ErrorKind.PORT_EXIT, message="lost", adrift=True)
UNREACHED = Failed(kind=ErrorKind.PORT_EXIT, message="east refused", unreached=True)
NO_AGENT = Failed(kind=ErrorKind.AGENT_NOT_FOUND, message="no kiro-cli")


def hosts_of(started: list[do.StartWorker]) -> list[str]:
    return [start.host for start in started]


def claim_of(driver: Driver, name: str = "a") -> object:
    return driver.scheduler.snapshot(driver.now).claims.get(issue(name).id)


def home(name: str, host: str) -> KnownWorkspace:
    return KnownWorkspace(
        issue_id=issue(name).id, identifier=name.upper(), host=host, path=f"/w/{name}"
    )


def test_runs_are_spread_evenly() -> None:
    """Each run goes to the host with the fewest."""
    driver = Driver(THREE)

    started = driver.start(*(issue(name) for name in "abcdef"))

    assert sorted(hosts_of(started)) == ["east", "east", "north", "north", "west", "west"]


def test_a_full_host_gets_no_more_and_full_hosts_mean_waiting() -> None:
    """The limit for each host holds, and nothing ever runs on this machine instead."""
    driver = Driver(replace(THREE, max_per_host=1))

    started = driver.start(*(issue(name) for name in "abcde"))

    assert sorted(hosts_of(started)) == ["east", "north", "west"]
    explanation = driver.scheduler.explain_issue("D", driver.now)
    assert isinstance(explanation, Explanation)
    closed = [v for v in explanation.gates if v.reason is not None]
    assert [v.gate for v in closed] == ["host slot"]
    assert "east has 1 of 1 runs" in (closed[0].reason or "")


def test_an_unreached_host_costs_no_attempt() -> None:
    """The issue starts elsewhere at once with the attempt it had; the host is rested and told."""
    driver = Driver(THREE)
    (run,) = driver.start(issue())

    decisions = driver.end(run.run_id, UNREACHED)

    (again,) = starts(driver.pass_time())
    assert run.host == "east"
    assert again.host != "east"
    assert again.streak.failures == 0
    assert only(decisions, facts.HostRested) == [
        facts.HostRested(host="east", error="east refused", seconds=10.0)
    ]


def test_an_unreached_host_costs_no_session() -> None:
    """A turn that could not start there is none of the sessions that an issue may have."""
    driver = Driver(replace(THREE, max_sessions=1))
    (run,) = driver.start(issue())
    driver.tell(ev.TurnStarted(run.run_id, 1))

    driver.end(run.run_id, UNREACHED)

    (again,) = starts(driver.pass_time())
    assert again.host != run.host


def test_pauses_grow_and_end_with_the_first_use() -> None:
    """Ten seconds, then twice as long each time; a host that was reached is well again."""
    driver = Driver(THREE)
    pauses = []

    for _ in range(3):
        (rested,) = only(driver.tell(ev.HostTroubled("east", "refused")), facts.HostRested)
        assert isinstance(rested, facts.HostRested)
        pauses.append(rested.seconds)
        driver.pass_time(rested.seconds)
    back = driver.tell(ev.HostReached("east"))
    (after,) = only(driver.tell(ev.HostTroubled("east", "refused")), facts.HostRested)

    assert pauses == [10, 20, 40]
    assert back == [facts.HostBack(host="east")]
    assert isinstance(after, facts.HostRested)
    assert after.seconds == 10


def test_a_resting_host_gets_nothing_and_then_one_run() -> None:
    """After its rest it is tried with one run; when that reaches it, it gets its share again."""
    driver = Driver(replace(POLICY, hosts=("east",)))
    driver.tell(ev.HostTroubled("east", "refused"))

    at_once = driver.start(*(issue(name) for name in "abc"))
    probes = starts(driver.pass_time(10))
    more = starts(driver.settle(driver.tell(ev.HostReached("east"))))

    assert at_once == []
    assert hosts_of(probes) == ["east"]
    assert hosts_of(more) == ["east", "east"]


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
    assert explanation.standing is Standing.WAITING
    assert (driver.now, explanation.next_at) == (10, 19)


def test_the_trouble_of_a_host_is_no_reason_of_each_issue() -> None:
    """What is wrong with a host stands with the host: waits and the backlog only name it."""
    driver = Driver(replace(POLICY, hosts=("east",)))
    driver.tell(ev.HostTroubled("east", "a long story"))
    driver.start(issue("a"), issue("b"))

    backlog = driver.scheduler.backlog(driver.scheduler.snapshot(driver.now), 5)

    reason = "no host is free (east rests after trouble)"
    assert [kept.reason for kept in backlog.first_queued] == [reason, reason]


def test_an_issue_waits_for_the_host_of_its_workspace() -> None:
    """While that host is full it waits, though another is free."""
    memory = Memory(workspaces=(home("b", "east"),))
    driver = Driver(replace(THREE, hosts=("east", "west"), max_per_host=1), memory)
    (first,) = driver.start(issue("a"))
    assert first.host == "east"

    waits = driver.start(issue("b"))
    driver.tell(ev.WorkspaceMade(first.run_id, home("a", "east")))
    ended = starts(driver.end(first.run_id, Failed(kind=ErrorKind.PORT_EXIT, message="no")))

    assert waits == []
    assert [(start.issue.id, start.host) for start in ended] == [("b", "east")]


def test_a_workspace_in_which_nothing_ran_ties_no_issue_to_a_host_in_trouble() -> None:
    """The run that made it could not go on there; the issue goes elsewhere at once."""
    driver = Driver(replace(THREE, hosts=("east", "west")))
    (first,) = driver.start(issue())
    driver.tell(ev.WorkspaceMade(first.run_id, home("a", "east"), True))

    driver.end(first.run_id, UNREACHED)
    moved = starts(driver.pass_time())

    assert first.host == "east"
    assert [(start.host, start.streak.failures) for start in moved] == [("west", 0)]


def test_a_workspace_in_which_something_ran_ties_its_issue_to_the_host() -> None:
    """A later run that cannot even begin there changes nothing about that."""
    driver = Driver(replace(THREE, hosts=("east", "west")))
    (first,) = driver.start(issue())
    driver.tell(ev.WorkspaceMade(first.run_id, home("a", "east"), True))
    driver.end(first.run_id, Failed(kind=ErrorKind.TURN_FAILED, message="no"))
    (second,) = starts(driver.pass_time(100))
    driver.tell(ev.WorkspaceMade(second.run_id, home("a", "east")))

    driver.end(second.run_id, UNREACHED)
    at_once = starts(driver.pass_time())
    later = starts(driver.pass_time(100))

    assert second.host == "east"
    assert (at_once, hosts_of(later)) == ([], ["east"])


def test_a_new_workspace_is_preferred_while_its_host_is_well() -> None:
    """Nothing ran in it because of the tracker, say; there is no reason to make another."""
    driver = Driver(replace(THREE, hosts=("east", "west")))
    driver.start(issue("b"))
    (first,) = driver.start(issue("a"))
    driver.tell(ev.WorkspaceMade(first.run_id, home("a", first.host), True))
    driver.end(first.run_id, UNREACHED)

    driver.tell(ev.HostReached(first.host))
    again = starts(driver.pass_time())

    assert hosts_of(again) == [first.host]


@pytest.mark.parametrize(("seconds", "elsewhere"), [(599.0, []), (600.0, ["west"])])
def test_patience_with_a_host_ends_after_ten_minutes(seconds: float, elsewhere: list[str]) -> None:
    """Until then an issue waits for its workspace; from then on it begins anew elsewhere."""
    memory = Memory(workspaces=(home("a", "east"),))
    driver = Driver(replace(THREE, hosts=("east", "west"), max_retry_backoff=10_000.0), memory)
    for pause in (10, 20, 40, 80, 160):
        driver.tell(ev.HostTroubled("east", "refused"))
        driver.pass_time(pause)
    driver.tell(ev.HostTroubled("east", "refused"))
    at_once = driver.start(issue())

    said = driver.pass_time(seconds - driver.now)
    again = driver.pass_time()

    assert at_once == []
    assert hosts_of(starts(said)) == elsewhere
    assert only(said, facts.HostGivenUp) == [facts.HostGivenUp(host="east") for _ in elsewhere]
    assert only(again, facts.HostGivenUp) == []


def test_the_wait_for_the_host_of_a_workspace_tells_its_end() -> None:
    """Who reads why nothing happens need not look the ten minutes up."""
    memory = Memory(workspaces=(home("a", "east"),))
    driver = Driver(replace(THREE, hosts=("east", "west")), memory)
    driver.tell(ev.HostTroubled("east", "refused"))
    driver.start(issue())

    explanation = driver.scheduler.explain_issue("A", driver.now)

    assert isinstance(explanation, Explanation)
    assert (
        "(east rests after trouble, and its workspace is there;"
        " after 10 minutes of trouble it goes elsewhere); east: refused"
    ) in explanation.next_step


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


def test_a_workspace_ties_no_issue_to_a_host_without_the_program() -> None:
    """It was made before the program was missed, and every other host is still tried."""
    driver = Driver(replace(POLICY, hosts=("east", "west")))
    (first,) = driver.start(issue())
    driver.tell(ev.WorkspaceMade(first.run_id, home("a", first.host)))

    driver.end(first.run_id, NO_AGENT)
    (second,) = starts(driver.pass_time())
    driver.tell(ev.WorkspaceMade(second.run_id, home("a", second.host)))
    driver.end(second.run_id, NO_AGENT)

    assert {first.host, second.host} == {"east", "west"}
    claim = claim_of(driver)
    assert isinstance(claim, Held)
    assert claim.reason is HoldReason.AGENT_NOT_FOUND


def test_runs_that_miss_the_program_together_rest_their_host_once() -> None:
    """The pauses grow by tries, not by how many runs were under way."""
    driver = Driver(replace(POLICY, hosts=("east", "west")))
    started = driver.start(*(issue(name) for name in "abcd"))
    east = [start for start in started if start.host == "east"]

    told = [said for start in east for said in driver.end(start.run_id, NO_AGENT)]

    assert len(east) == 2
    assert [said for said in told if isinstance(said, facts.HostRested)] == [
        facts.HostRested(host="east", error=NO_AGENT.message, seconds=10.0)
    ]


def test_a_reload_tries_hosts_without_the_program_again() -> None:
    """Other settings may name another program, so nobody waits for a rest to end."""
    driver = Driver(replace(POLICY, hosts=("east", "west")))
    (first,) = driver.start(issue())
    driver.end(first.run_id, NO_AGENT)
    (second,) = starts(driver.pass_time())
    driver.end(second.run_id, NO_AGENT)

    driver.settle(driver.tell(ev.PolicyChanged(replace(POLICY, hosts=("east", "west")))))

    assert len(starts(driver.pass_time())) == 1


def test_reaching_a_host_does_not_mean_that_it_has_the_agent() -> None:
    """Only an agent that was launched there ends that trouble."""
    driver = Driver(replace(POLICY, hosts=("east", "west")))
    (first,) = driver.start(issue())
    driver.end(first.run_id, NO_AGENT)

    reached = driver.tell(ev.HostReached(first.host))

    assert reached == []
    assert driver.scheduler.snapshot(driver.now).troubled[first.host].lacks_agent


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


def test_this_machine_is_never_rested() -> None:
    """Trouble of a host that is not in the list, or is this machine, changes nothing."""
    driver = Driver()

    told = driver.tell(ev.HostTroubled("local", "no")) + driver.tell(ev.HostTroubled("x", "no"))

    assert told == []
    assert hosts_of(driver.start(issue())) == ["local"]


def test_a_reload_ends_no_rest() -> None:
    """Other settings do not mend a host, and the next trouble is not its first."""
    driver = Driver(THREE)
    driver.tell(ev.HostTroubled("east", "no route"))
    driver.pass_time(10.0)
    driver.tell(ev.HostTroubled("east", "no route"))

    driver.settle(driver.tell(ev.PolicyChanged(replace(THREE, max_concurrent_agents=2))))
    driver.now += 19.0
    early = driver.start(issue("a"), issue("b"), issue("c"))
    snapshot = driver.scheduler.snapshot(driver.now)

    assert sorted(hosts_of(early)) == ["north", "west"]
    assert (snapshot.troubled["east"].until, snapshot.troubled["east"].times) == (30.0, 2)


def test_a_trouble_that_goes_on_is_the_same_trouble() -> None:
    """However often a host is rested meanwhile: its patience runs out once, and is not told again
    until the host was well."""
    hosts, now, given_up = Hosts(), 0.0, list[str]()
    hosts.trouble("east", "refused", THREE, now)
    while now < 3 * PATIENCE:
        now = min(hosts.wakeup_at(), 3 * PATIENCE)
        given_up += hosts.pass_time(now)[1]
        hosts.trouble("east", "refused", THREE, now)
    before = hosts.of("east")
    hosts.reached("east", launched=True)
    hosts.trouble("east", "refused", THREE, now)

    assert given_up == ["east"]
    assert before is not None
    assert (before.since, before.missed) == (0.0, True)
    after = hosts.of("east")
    assert after is not None
    assert (after.since, after.times, after.missed) == (now, 1, False)
