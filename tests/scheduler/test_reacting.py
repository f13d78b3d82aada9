"""What a look at a pull request leads to says only what holds, and drops no errand."""

from __future__ import annotations

from msgspec.structs import replace

from sortie.config.reactions import ChecksReaction, CommandsReaction, ReactionsSettings
from sortie.model.pull_requests import CheckState, HeadCheck, Note, PullRequestState
from sortie.model.watches import (
    Acknowledgement,
    CheckRerun,
    Errand,
    PullRequestComment,
    ReactionKind,
    Watch,
)
from sortie.scheduler.decisions import LookAtPullRequests
from sortie.scheduler.memory import Memory
from sortie.scheduler.outcome_records import RecordWatch
from sortie.scheduler.pull_request_events import PullRequestsSeen
from tests.scheduler.driver import EPOCH, POLICY, Driver, issue, only
from tests.store.watches import REQUEST

WATCH = Watch(pull_request=REQUEST, since=EPOCH, heads=("b" * 40,))
FAILED = HeadCheck(id="9", name="test", state=CheckState.FAILURE, required=True)


def seen(reactions: ReactionsSettings, watch: Watch, found: PullRequestState) -> tuple[Errand, ...]:
    """Return the errands of a watch once its pull request was seen so."""
    policy = replace(POLICY, reactions=reactions, handoff_state="review")
    one = issue("one", state="Review")
    driver = Driver(policy, Memory(watches=((one, watch),)))
    driver.put(one)
    (look,) = only(driver.pass_time(), LookAtPullRequests)
    assert isinstance(look, LookAtPullRequests)
    told = driver.tell(
        PullRequestsSeen(look.token, frozenset({one.id}), {one.id: found}, frozenset({"ann"}))
    )
    last = only(told, RecordWatch)[-1]
    assert isinstance(last, RecordWatch)
    return last.watch.errands


def test_a_call_for_a_person_names_the_comment_only_where_it_is_obeyed() -> None:
    """Without ``commands`` nobody listens to comments."""
    watch = replace(WATCH, runs={ReactionKind.CHECKS: 2})
    found = PullRequestState(pull_request=REQUEST, checks=(FAILED,))
    told = []
    for commands in (None, CommandsReaction()):
        reactions = ReactionsSettings(checks=ChecksReaction(), commands=commands)
        errands = seen(reactions, watch, found)
        told += [each.body for each in errands if isinstance(each, PullRequestComment)]

    assert ["/sortie retry" in body for body in told] == [False, True]
    assert all("push to the branch" in body for body in told)


def test_checks_are_made_again_after_what_was_to_be_done_before() -> None:
    """What a comment asked for in the same look is acknowledged all the same."""
    note = Note(id="7", author="ann", body="/sortie retry")
    found = PullRequestState(pull_request=REQUEST, checks=(FAILED,), comments=(note,))
    reactions = ReactionsSettings(checks=ChecksReaction(rerun=True), commands=CommandsReaction())

    errands = seen(reactions, WATCH, found)

    assert errands == (Acknowledgement(note=note), CheckRerun(check=FAILED))
