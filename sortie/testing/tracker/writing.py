"""Moves and comments are made once, and never over what a person did."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from itertools import cycle, islice
from typing import Literal

import trio
from msgspec.structs import replace

from sortie.model import Comment, Issue, IssueId, TrackerError, TrackerErrorKind
from sortie.testing.checks import NotTried, require, require_equal
from sortie.testing.tracker.rig import (
    THEN,
    LosesAnswers,
    Rig,
    as_kept,
    check,
    make_issue,
    needs,
    read_one,
    refusal,
    text_of,
    without_ids,
)
from sortie.trackers import Capability, IssuesRead


async def _bodies(rig: Rig, issue_id: str = "A-1") -> list[str]:
    return [comment.body for comment in (await read_one(rig, issue_id)).comments]


@check("move.answer", "a move changes the state alone, and answers how the issue stands")
async def move_answer(rig: Rig) -> None:
    """A re-read agrees with the answer; nothing but state and time differ."""
    before = make_issue(
        "A-1",
        description="Some text",
        comments=(Comment(author="ann", body="hello", created_at=THEN),),
    )
    rig.put(before)

    answer = await rig.tracker.transition(before, "In Progress")

    changed = as_kept(rig, replace(before, state="In Progress"))
    told = replace(without_ids(answer), updated_at=changed.updated_at)
    require_equal(told, changed, "the answer to a move")
    require_equal(await read_one(rig, "A-1"), answer, "the issue after a move")


@check("move.named-states", "an issue can be moved to every state that the settings name")
async def move_to_named_states(rig: Rig) -> None:
    """From active through the handoff to terminal and back, and lists agree."""
    issue = make_issue("A-1", "Todo")
    rig.put(issue)

    for state in ("In Progress", "Review", "Done", "Todo", "Dropped", "Review"):
        issue = await rig.tracker.transition(issue, state)
        listed = [found.state for found in await rig.tracker.fetch_candidates([state])]
        require_equal((issue.state, listed), (state, [state]), f"the move to {state}")


@check("move.conflict", "a move from a state in which the issue is no longer changes nothing")
async def move_conflict(rig: Rig) -> None:
    """It is a CONFLICT, and spelling makes none."""
    rig.put(make_issue("A-1", "Todo"))
    issue = await read_one(rig, "A-1")
    rig.put(make_issue("A-1", "Done"))

    move = rig.tracker.transition(issue, "In Progress")
    await refusal(move, "a move of an issue that a person has moved", TrackerErrorKind.CONFLICT)
    present = await read_one(rig, "A-1")
    folded = await rig.tracker.transition(make_issue("A-1", " DONE"), "Dropped")

    require_equal(present.state, "Done", "the state after a conflict")
    require_equal(folded.state, "Dropped", "the state after a move from a state in capitals")


@check("move.race", "of many moves out of one state one is made")
async def move_race(rig: Rig) -> None:
    """The others are conflicts."""
    needs(rig, Capability.COMPARE_AND_SET)
    rig.put(make_issue("A-1"))
    kinds: list[TrackerErrorKind | None] = []

    async def move(state: str) -> None:
        try:
            await rig.tracker.transition(make_issue("A-1"), state)
        except TrackerError as error:
            kinds.append(error.kind)
        else:
            kinds.append(None)

    async with trio.open_nursery() as nursery:
        for state in islice(cycle(("In Progress", "Review", "Done")), 8):
            nursery.start_soon(move, state)

    counts = kinds.count(None), kinds.count(TrackerErrorKind.CONFLICT)
    require_equal(counts, (1, 7), "the moves that were made, and the conflicts")


@check("move.complete", "completing a move changes no issue whose move is whole")
async def move_complete(rig: Rig) -> None:
    """Neither right after the move, nor once a person has moved the issue on."""
    rig.put(make_issue("A-1"))
    moved = await rig.tracker.transition(await read_one(rig, "A-1"), "Review")

    await rig.tracker.complete_move(moved)
    whole = await read_one(rig, "A-1")
    rig.put(make_issue("A-1", "Done"))
    try:
        await rig.tracker.complete_move(moved)
    except TrackerError as error:
        require_equal(error.kind, TrackerErrorKind.CONFLICT, "the refusal to complete a move")

    require_equal(whole.state, "Review", "the state after the move was completed")
    require_equal((await read_one(rig, "A-1")).state, "Done", "the state that a person chose")


@check("move.lost-answer", "a move whose answer is lost is made, or an outage")
async def move_lost_answer(rig: Rig) -> None:
    """It is no refusal: reading the issue again and moving it leads to the state."""
    rig.put(make_issue("A-1"))
    issue = await read_one(rig, "A-1")

    await _with_lost_answer(rig, "move", lambda: rig.tracker.transition(issue, "Review"))
    moved = await read_one(rig, "A-1")
    again = await rig.tracker.transition(moved, "Review")

    require_equal((moved.state, again.state), ("Review", "Review"), "the states")


async def _with_lost_answer(
    rig: Rig, change: Literal["move", "comment"], request: Callable[[], Awaitable[object]]
) -> bool:
    """Make a change whose answer is lost, and tell whether the tracker found that it was made.

    Raises NotKept for an error that is no outage.
    """
    if not isinstance(rig, LosesAnswers):
        raise NotTried("its rig has no lose_answer")
    rig.lose_answer(change)
    try:
        await request()
    except TrackerError as error:
        require(error.kind.is_outage, f"a {change} whose answer was lost is {error.kind}: {error}")
        return False
    return True


@check("comment.order", "comments are added in order, whatever the state, and none is lost")
async def comments_in_order(rig: Rig) -> None:
    """Many at a time included; they are signed by Sortie and have a time."""
    rig.put(make_issue("A-1", "Done", comments=(Comment(author="ann", body="hello"),)))
    said = "first\n\n- {{ 7*7 }}: 'x'"

    await rig.tracker.comment(make_issue("A-1", "Todo"), said)
    async with trio.open_nursery() as nursery:
        for number in range(8):
            nursery.start_soon(rig.tracker.comment, make_issue("A-1"), f"more {number}")
    comments = (await read_one(rig, "A-1")).comments

    wanted = [("ann", "hello"), ("sortie", text_of(rig, said))]
    require_equal([(c.author, c.body) for c in comments[:2]], wanted, "the first comments")
    bodies = sorted(comment.body for comment in comments[2:])
    require_equal(bodies, [f"more {n}" for n in range(8)], "the comments made at once")
    require(all(c.created_at for c in comments[1:]), "a comment has no time")


@check("comment.again", "a comment that an earlier life may have made is made once")
async def comment_again(rig: Rig) -> None:
    """Where it is there it is found, and else it is made."""
    rig.put(make_issue("A-1", "Done"))
    issue = make_issue("A-1", "Done")
    await rig.tracker.comment(issue, "made before the crash", "run-1:completion")

    for body, key in (
        ("made before the crash", "run-1:completion"),
        ("never made", "run-2:completion"),
        ("never made", "run-2:completion"),
    ):
        await rig.tracker.comment(issue, body, key, again=True)

    require_equal(await _bodies(rig), ["made before the crash", "never made"], "the comments")


@check("comment.keys", "a comment is known by its key, and not by what it says")
async def comment_keys(rig: Rig) -> None:
    """Another one with the same text is made, and one that people wrote is none of ours."""
    needs(rig, Capability.COMMENT_KEYS)
    issue = make_issue("A-1", comments=(Comment(author="ann", body="Done.", created_at=THEN),))
    rig.put(issue)

    await rig.tracker.comment(issue, "Done.", "run-1:completion", again=True)
    await rig.tracker.comment(issue, "Done.", "run-2:completion", again=True)
    for key in ("run-1:completion", "run-2:completion"):
        await rig.tracker.comment(issue, "Done, in other words.", key, again=True)

    require_equal(await _bodies(rig), ["Done."] * 3, "the comments")


@check("comment.lost-answer", "a comment whose answer is lost is made once, however often tried")
async def comment_lost_answer(rig: Rig) -> None:
    """Tried with the same key, in this life and in a later one; another key is another comment."""
    rig.put(make_issue("A-1", "Done"))
    issue = make_issue("A-1", "Done")

    async def say(again: bool) -> None:
        await rig.tracker.comment(issue, "The run ended.", "run-1:completion", again=again)

    if not await _with_lost_answer(rig, "comment", lambda: say(again=False)):
        await say(again=False)
    await say(again=True)
    await rig.tracker.comment(issue, "The next run ended.", "run-2:completion")

    require_equal(await _bodies(rig), ["The run ended.", "The next run ended."], "the comments")


@check("write.missing", "neither a move nor a comment brings an issue into being")
async def write_to_missing(rig: Rig) -> None:
    """An issue that is gone is NOT_FOUND."""
    issue: Issue = make_issue("A-1")
    rig.put(issue)
    rig.lose("A-1")

    missing = TrackerErrorKind.NOT_FOUND
    await refusal(rig.tracker.transition(issue, "Done"), "a move", missing)
    await refusal(rig.tracker.comment(issue, "hello"), "a comment", missing)

    read = await rig.tracker.fetch_by_ids([IssueId("A-1")])
    require_equal(read, IssuesRead(), "a re-read of an issue that is gone")
