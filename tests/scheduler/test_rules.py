"""Rules: the first that matches decides, for as long as an issue is in hand, and has its slots."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from sortie.config.rules import Conditions, PriorityCondition
from sortie.model import ErrorKind, Failed, Finish, Finished
from sortie.scheduler import Policy
from sortie.scheduler import events as ev
from sortie.scheduler import records as rec
from sortie.scheduler.grants import SlotGrant
from sortie.scheduler.policy import RulePolicy
from sortie.scheduler.rule_choice import first_match, mismatch
from tests.scheduler.driver import POLICY, Driver, issue, only, starts
from tests.scheduler.lives import Lives

BROKE = Failed(kind=ErrorKind.TURN_FAILED, message="it broke")


def rule(name: str, *labels: str, agent: str = "kiro", **shares: Any) -> RulePolicy:
    return RulePolicy(
        name=name,
        when=Conditions(labels=labels) if labels else Conditions(),
        policy=replace(POLICY, rule=name, agent=agent, account=agent),
        **shares,
    )


def with_rules(*rules: RulePolicy, **fields: Any) -> Policy:
    return replace(POLICY, rules=rules, **fields)


def labelled(name: str, *labels: str, **fields: Any) -> Any:
    return issue(name, labels=labels, **fields)


def when(**conditions: object) -> RulePolicy:
    return replace(rule("one"), when=Conditions.model_validate(conditions))


FULL = issue(
    "a",
    labels=("area/web", "Docs"),
    issue_type="Bug",
    assignee="Ann",
    author="bob",
    priority=2,
    title="Mend a Typo: twice, here",
)

MATCHING = [
    {},
    {"labels": ("docs",)},
    {"labels": ("none", "AREA/*")},
    {"states": ("doing", " todo ")},
    {"issue_type": ("task", "bug")},
    {"assignee": ("ann",)},
    {"author": ("BOB",)},
    {"identifier": ("x-*", "a")},
    {"priority": PriorityCondition(lte=2)},
    {"title": ("typo",)},
    {"title": ("typo twice",)},
    {"labels": ("docs",), "author": ("bob",), "title": ("mend",)},
]
OTHERS = [
    ({"labels": ("doc",)}, "it has no label doc"),
    ({"labels": ("area/?",)}, "it has no label area/?"),
    ({"states": ("Doing",)}, "its state is Todo, not Doing"),
    ({"issue_type": ("Task", "Epic")}, "its type is Bug, not Task or Epic"),
    ({"assignee": ("an",)}, "its assignee is Ann, not an"),
    ({"author": ("ann",)}, "its author is bob, not ann"),
    ({"identifier": ("B*",)}, "its identifier is A, not B*"),
    ({"priority": PriorityCondition(lt=2)}, "its priority is 2, not lt 2"),
    ({"title": ("typ",)}, "its title has no word typ"),
    ({"title": ("twice typo",)}, "its title has no word twice typo"),
    ({"labels": ("docs",), "author": ("ann",)}, "its author is bob, not ann"),
]


@pytest.mark.parametrize("conditions", MATCHING, ids=str)
def test_a_rule_matches_where_every_key_fits(conditions: dict[str, object]) -> None:
    """Of a list one has to fit; case does not matter; titles are compared by whole words."""
    assert mismatch(when(**conditions), FULL) is None


@pytest.mark.parametrize(("conditions", "why"), OTHERS, ids=str)
def test_a_rule_says_why_it_does_not_match(conditions: dict[str, object], why: str) -> None:
    """The sentence names what the issue has and what was asked for."""
    assert mismatch(when(**conditions), FULL) == why


def test_what_an_issue_does_not_have_fits_nothing() -> None:
    """Neither a priority nor a person is guessed."""
    bare = issue("a")

    assert mismatch(when(priority=PriorityCondition(lt=9)), bare) == "it has no priority, not lt 9"
    assert mismatch(when(assignee=("ann",)), bare) == "its assignee is not known, not ann"


def test_a_rule_is_for_its_own_active_states_only() -> None:
    """States of the top level are not those of a rule that has others."""
    other = replace(rule("one"), policy=replace(POLICY, active_states=frozenset({"ready"})))

    assert mismatch(other, FULL) == "the rule does not work on issues in the state Todo"
    assert mismatch(other, replace(FULL, state="READY")) is None


def test_the_first_match_decides() -> None:
    """What none matches is left to the top level."""
    policy = with_rules(rule("docs", "docs"), rule("urgent", "urgent"))
    driver = Driver(policy)

    started = driver.start(
        labelled("a", "urgent", "docs"), labelled("b", "urgent"), labelled("c", "other")
    )

    assert {start.issue.id: start.rule for start in started} == {
        "a": "docs",
        "b": "urgent",
        "c": "",
    }
    first = first_match(policy, labelled("a", "urgent", "docs"))
    assert first is policy.rules[0]


TWO = with_rules(rule("docs", "docs"), rule("rest"))


def test_the_choice_outlives_labels_retries_and_crashes() -> None:
    """An issue in hand stays with its rule, whatever its labels are now."""
    daemon = Lives(TWO)
    (start,) = daemon.start(labelled("a", "docs"))
    daemon.put(labelled("a", "other"))

    daemon.end(start.run_id, BROKE)
    (retry,) = starts(daemon.pass_time(60.0))
    daemon.die()
    (after_crash,) = starts(daemon.pass_time(600.0))

    assert [start.rule, retry.rule, after_crash.rule] == ["docs", "docs", "docs"]


def test_the_choice_outlives_reloads_as_long_as_there_is_the_rule() -> None:
    """Order and condition may change; without the rule the first match decides."""
    daemon = Lives(TWO)
    (start,) = daemon.start(labelled("a", "docs"))

    moved = replace(rule("docs", "nobody", agent="acp"))
    daemon.tell(ev.PolicyChanged(with_rules(rule("rest"), moved)))
    daemon.end(start.run_id, BROKE)
    (same,) = starts(daemon.pass_time(60.0))
    daemon.tell(ev.PolicyChanged(with_rules(rule("rest"))))
    daemon.end(same.run_id, BROKE)
    (other,) = starts(daemon.pass_time(600.0))

    assert [start.rule, same.rule, other.rule] == ["docs", "docs", "rest"]


def test_what_was_claimed_without_rules_stays_without() -> None:
    """A first rule that appears by a reload takes no issue in hand over."""
    daemon = Lives(POLICY)
    (start,) = daemon.start(labelled("a", "docs"))

    daemon.tell(ev.PolicyChanged(TWO))
    daemon.end(start.run_id, BROKE)
    daemon.die()
    (retry,) = starts(daemon.pass_time(600.0))

    assert (start.rule, retry.rule) == ("", "")


def test_the_choice_is_forgotten_when_the_issue_is_let_go() -> None:
    """Back from a state that is not active, it is chosen for by what it is then."""
    daemon = Lives(TWO)
    (start,) = daemon.start(labelled("a", "docs"))
    daemon.put(labelled("a", "other", state="Elsewhere"))
    daemon.settle(daemon.tell(ev.RefreshRequested()))
    daemon.end(start.run_id, Finished(finish=Finish.LEFT_ACTIVE))

    assert daemon.disk.recover().rules == {}
    (again,) = daemon.start(labelled("a", "other"))
    assert again.rule == "rest"


def slots(policy: Policy, *names: str) -> dict[str, int]:
    """Return how many runs each rule has when so many issues of each want one."""
    driver = Driver(policy)
    driver.start(*(labelled(f"{name}{at}", name) for at, name in enumerate(names)))
    return rule_load(driver)


def test_guaranteed_slots_are_given_to_nobody_else() -> None:
    """Not to other rules, nor to the top level; the rule itself may have more than these."""
    policy = with_rules(
        rule("x", "x", guaranteed=2), rule("y", "y", guaranteed=1), max_concurrent_agents=5
    )

    assert slots(policy, *"zzzzzz") == {"": 2}
    assert slots(policy, *"xxxxxx") == {"x": 4}
    assert slots(policy, *"aaaaxxyy") == {"x": 2, "y": 1, "": 2}


def test_a_guaranteed_slot_is_had_at_once() -> None:
    """Although the others have taken all that they could."""
    driver = Driver(with_rules(rule("x", "x", guaranteed=1), max_concurrent_agents=2))
    first = driver.start(*(labelled(f"z{n}", "z") for n in range(3)))

    (late,) = driver.start(labelled("a", "x"))

    assert ([start.rule for start in first], late.rule) == ([""], "x")


def granted(driver: Driver, number: int, slots: int) -> list[str]:
    """Let a process of several grant so many slots; return the rules of what is started."""
    grant = SlotGrant(number=number, slots=slots, total=4, hosts={"local": slots})
    return [start.rule for start in starts(driver.settle(driver.tell(ev.SlotsGranted(grant))))]


def test_guaranteed_slots_are_not_kept_out_of_a_small_share_of_a_process() -> None:
    """A share is as small as what is wanted: nobody would be started if they were."""
    driver = Driver(with_rules(rule("x", "x", guaranteed=1), max_concurrent_agents=4))
    granted(driver, 1, 0)
    waiting = driver.start(labelled("z", "z"))
    idle = driver.scheduler.idle_polls

    assert (waiting, idle) == ([], 0)
    assert granted(driver, 2, 1) == [""]


def test_a_rule_has_its_own_limit() -> None:
    """Also while slots are free, unless it may burst."""
    policy = with_rules(rule("x", "x", max_concurrent_agents=2), max_concurrent_agents=6)

    assert slots(policy, *"xxxxz") == {"x": 2, "": 1}


def test_a_rule_bursts_while_nobody_else_wants_the_slots() -> None:
    """Beyond its limit it takes only what the others leave, and never what is guaranteed."""
    burst = rule("x", "x", max_concurrent_agents=1, burst_to=3)
    policy = with_rules(burst, max_concurrent_agents=4)
    kept = with_rules(burst, rule("y", "y", guaranteed=2), max_concurrent_agents=4)

    assert slots(policy, *"xxxxx") == {"x": 3}
    assert slots(policy, *"xxxxxzz") == {"x": 2, "": 2}
    assert slots(policy, *"xxxxxzzzz") == {"x": 1, "": 3}
    assert slots(kept, *"xxxxx") == {"x": 2}


def rule_load(driver: Driver) -> dict[str, int]:
    return dict(driver.scheduler.snapshot(driver.now).by_rule)


def test_a_missing_program_stops_the_issues_of_its_rule_alone() -> None:
    """One of them is tried, so that the error is on record; others start as ever."""
    driver = Driver(with_rules(rule("x", "x", agent="acp"), rule("y", "y")))
    driver.put(*(labelled(f"{name}{n}", name) for n in range(3) for name in "xy"))
    driver.tell(ev.RefreshRequested())

    missing = {"x": "there is no acp"}
    listed = ev.CandidatesFetched(tuple(driver.tracker.values()), rule_hindrances=missing)
    driver.settle(driver.tell(listed))

    assert rule_load(driver) == {"x": 1, "y": 3}
    waits = driver.scheduler.snapshot(driver.now)
    assert len(waits.candidates) == 2


def test_a_usage_limit_is_that_of_a_rules_account() -> None:
    """Rules with the same agent wait for it, others go on."""
    rules = (rule("x", "x", agent="acp"), rule("y", "y"), rule("z", "z", agent="acp"))
    driver = Driver(with_rules(*rules))
    (start,) = driver.start(labelled("x1", "x"))
    driver.tell(ev.UsageLimitMet(start.run_id, "acp", "limit reached", None, 3600.0))
    driver.end(start.run_id, Failed(kind=ErrorKind.USAGE_LIMIT, message="limit reached"))

    started = driver.start(*(labelled(f"{name}2", name) for name in "xyz"))

    assert [start.rule for start in started] == ["y"]


def test_a_run_is_told_its_rule_and_has_its_agent() -> None:
    """The record of the run, too."""
    driver = Driver(with_rules(rule("x", "x", agent="acp")))
    driver.put(labelled("a", "x"))

    decisions = driver.settle(driver.tell(ev.RefreshRequested()))

    (record,) = only(decisions, rec.RecordRun)
    assert isinstance(record, rec.RecordRun)
    assert (record.agent, record.rule) == ("acp", "x")
