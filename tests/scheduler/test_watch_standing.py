"""How watched pull requests are shown: who is needed, in which order, and what was used."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from sortie.config.reactions import (
    ChecksReaction,
    CommandsReaction,
    MergeReaction,
    ReactionsSettings,
)
from sortie.model import HoldReason, Issue
from sortie.model.pull_requests import PullRequest, PullRequestState
from sortie.model.watches import Reaction, ReactionKind, Watch
from sortie.scheduler.claims import Claim, Held
from sortie.scheduler.decisions import LookAtPullRequests
from sortie.scheduler.explanation import Explanation, IssueStanding
from sortie.scheduler.memory import Memory
from sortie.scheduler.pull_request_events import PullRequestsSeen
from sortie.scheduler.watch_standing import UsedRuns, WatchStage, standings
from sortie.scheduler.watch_table import Watched
from sortie.scheduler.ways_out import RETRY_COMMENT
from tests.scheduler.driver import EPOCH, POLICY, Driver, issue, only


def watched(name: str, *, since: float = 0.0, **changes: object) -> Watched:
    """Return the watched pull request of an issue, with this on record of it."""
    request = PullRequest(
        id=f"id-{name}",
        number=7,
        url=f"https://forge.example/team/thing/pulls/{name}",
        state="open",
        branch=f"sortie/{name}",
        base="main",
        title=name,
    )
    watch = replace(Watch(pull_request=request, since=since), **changes)
    return Watched(issue=issue(name), watch=watch, due_at=60.0, interval=60.0)


def held(one: Issue) -> Held:
    """Return a hold of an issue."""
    return Held(issue=one, reason=HoldReason.OPERATOR, detail="stopped", since=1.0)


ANSWERED = Reaction(kinds=(ReactionKind.CHECKS, ReactionKind.REVIEW), causes=("x",), head="c0ffee")


def test_who_needs_a_person_comes_first_and_of_each_stage_the_newest() -> None:
    """A hold and an exhausted kind come before runs, runs before merges, merges before the rest."""
    rest = watched("rest")
    queued = watched("queued")
    queued.seen = PullRequestState(pull_request=queued.watch.pull_request, queued=True)
    stopped = watched("stopped", since=5.0)
    table = [
        watched("over", over="it was merged"),
        rest,
        watched("newer", since=9.0),
        watched("merging", merging="c0ffee", since=9.0),
        queued,
        watched("run", reaction=ANSWERED),
        watched("spent", exhausted=ReactionKind.CHECKS),
        stopped,
    ]
    claims: dict[str, Claim] = {stopped.issue.id: held(stopped.issue)}

    shown = standings(table, claims, lambda one: f"rule of {one.id}")  # type: ignore[arg-type]

    assert [(each.issue.id, each.stage) for each in shown] == [
        ("stopped", WatchStage.NEEDS_PERSON),
        ("spent", WatchStage.NEEDS_PERSON),
        ("run", WatchStage.REACTION),
        ("merging", WatchStage.MERGING),
        ("queued", WatchStage.MERGING),
        ("newer", WatchStage.WATCHED),
        ("rest", WatchStage.WATCHED),
        ("over", WatchStage.ENDING),
    ]
    assert shown[0].rule == "rule of stopped"
    assert shown[0].held == HoldReason.OPERATOR
    assert shown[0].waits_for.startswith("its issue is held: ")
    assert [each.queued for each in shown].index(True) == 4


def test_the_next_look_is_not_known_while_the_forge_is_asked() -> None:
    """Then it is under way."""
    one = watched("one")
    waiting = standings([one], {})[0].next_at
    one.token = 3

    assert (waiting, standings([one], {})[0].next_at) == (60.0, None)


@pytest.mark.parametrize("merges", [True, False])
def test_runs_that_may_be_had_and_gates_are_explained(merges: bool) -> None:
    """Kinds that are off stand there only where runs were used; gates only where Sortie merges."""
    reactions = ReactionsSettings(
        checks=ChecksReaction(max_runs=4), merge=MergeReaction() if merges else None
    )
    one = watched("one", runs={ReactionKind.REVIEW: 2}, since=EPOCH)
    policy = replace(POLICY, reactions=reactions, handoff_state="review")
    handed_off = replace(one.issue, state="Review")
    driver = Driver(policy, Memory(watches=((handed_off, one.watch),)))
    driver.put(handed_off)
    (look,) = only(driver.pass_time(), LookAtPullRequests)
    assert isinstance(look, LookAtPullRequests)
    seen = PullRequestState(pull_request=one.watch.pull_request, conflicts=True)
    asked = one.issue.id
    driver.tell(PullRequestsSeen(look.token, frozenset({asked}), {asked: seen}))

    found = driver.scheduler.explain_issue("one", driver.now)

    assert isinstance(found, Explanation)
    assert found.standing is IssueStanding.WATCHED
    assert found.watch is not None
    assert found.watch.runs == (
        UsedRuns(kind=ReactionKind.CHECKS, used=0, most=4),
        UsedRuns(kind=ReactionKind.REVIEW, used=2, most=0),
    )
    closed = [gate.gate for gate in found.watch.gates if gate.reason is not None]
    assert ("conflicts" in closed) == merges
    assert found.gates == found.watch.gates
    assert bool(found.gates) == merges
    (shown,) = driver.scheduler.snapshot(driver.now).watched
    assert shown == found.watch.standing


def test_a_held_issue_that_is_watched_says_both_ways_out() -> None:
    """What a person can do in the forge stands beside what an operator can do."""
    one = watched("one", exhausted=ReactionKind.CHECKS, since=EPOCH)
    reactions = ReactionsSettings(checks=ChecksReaction(), commands=CommandsReaction())
    policy = replace(POLICY, reactions=reactions, handoff_state="review")
    handed_off = replace(one.issue, state="Review")
    hold = replace(held(handed_off), reason=HoldReason.REACTION_EXHAUSTED)
    driver = Driver(policy, Memory(watches=((handed_off, one.watch),), claims=(hold,)))

    found = driver.scheduler.explain_issue("one", driver.now)

    assert isinstance(found, Explanation)
    assert found.standing is IssueStanding.HELD
    assert found.watch is not None
    assert found.watch.standing.stage is WatchStage.NEEDS_PERSON
    assert f"sortie retry {one.issue.identifier}" in found.ways_out
    assert "a push to its pull request by somebody else" in found.ways_out
    assert RETRY_COMMENT in found.ways_out
