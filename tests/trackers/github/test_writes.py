"""What becomes of moves and comments when others write too, and when answers are lost."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import trio
from msgspec.structs import replace

from sortie.http.comments import key_in
from sortie.model import Issue, TrackerError, TrackerErrorKind
from tests.trackers.github.opened import GitHub, github_opened
from tests.trackers.server.exchange import Received
from tests.trackers.server.faults import Fault, Html, Refuse, Reset, Truncate


async def started(hub: GitHub, *labels: str) -> Issue:
    """Return an issue with these labels, as it is read."""
    hub.service.put(7, names=list(labels))
    issue = await hub.read(7)
    assert issue is not None
    return issue


def acts(hub: GitHub) -> list[str]:
    """Return the changes that were asked for, in order."""
    return [
        f"{r.method} {'/'.join(r.segments[7:])}".strip()
        for r in hub.server.asked
        if r.method != "GET"
    ]


async def test_a_move_changes_the_labels_of_states_and_no_other(hub: GitHub) -> None:
    """The new one is put on before the old ones are taken off; the set is never replaced."""
    issue = await started(hub, "In Progress", "bug", "Todo", "help wanted")

    moved = await hub.tracker.transition(issue, "Review")

    assert (moved.state, moved.labels) == ("Review", ("bug", "help wanted"))
    assert hub.service.names(7) == ["bug", "help wanted", "Review"]
    assert acts(hub) == ["POST labels", "DELETE labels/In Progress", "DELETE labels/Todo"]


@pytest.mark.parametrize(("state", "reason"), [("Done", "completed"), ("Dropped", "not_planned")])
async def test_a_terminal_state_closes_and_another_one_reopens(
    tmp_path: Path, state: str, reason: str
) -> None:
    """With the reason that the settings give."""
    async with github_opened(tmp_path, {"not_planned_states": ["Dropped"]}) as hub:
        issue = await started(hub, "Review")

        closed = await hub.tracker.transition(issue, state)
        item = dict(hub.service.items[7])
        opened = await hub.tracker.transition(closed, "Todo")

        assert (item["state"], item["state_reason"]) == ("closed", reason)
        assert (closed.state, opened.state) == (state, "Todo")
        assert (hub.service.items[7]["state"], hub.service.names(7)) == ("open", ["Todo"])


async def test_labels_are_written_as_the_repository_spells_them(hub: GitHub) -> None:
    """No twin is made of one in other letters, and each spelling of another state goes."""
    hub.service.put(1, names=["REVIEW", "in progress"])
    hub.service.labels.pop("review")
    hub.service.put(1, names=["REVIEW", "IN Progress"])
    issue = await started(hub, "IN Progress")

    await hub.tracker.transition(issue, "review")

    assert hub.service.names(7) == ["REVIEW"]
    assert [name for name in hub.service.labels if name == "review"] == ["review"]


@pytest.mark.parametrize("makes_labels", [True, False])
async def test_a_label_that_is_not_there_is_made(hub: GitHub, makes_labels: bool) -> None:
    """Whether GitHub makes an unknown label by itself or refuses it, which nobody knows."""
    hub.service.makes_labels = makes_labels
    hub.service.labels.pop("review")
    issue = await started(hub, "Todo")

    moved = await hub.tracker.transition(issue, "Review")

    assert moved.state == "Review"
    assert hub.service.names(7) == ["Review"]


async def test_labels_that_are_dropped_without_a_word_are_noticed(hub: GitHub) -> None:
    """GitHub answers 200 to somebody who may not label."""
    issue = await started(hub, "Todo")
    hub.service.may_write = False

    with pytest.raises(TrackerError, match="dropped it without a word") as refused:
        await hub.tracker.transition(issue, "Review")

    assert refused.value.kind is TrackerErrorKind.CLOSED
    assert acts(hub) == ["POST labels"]


@pytest.mark.parametrize("at", ["POST", "DELETE"])
async def test_a_person_who_moves_the_issue_meanwhile_is_a_conflict(hub: GitHub, at: str) -> None:
    """It is seen when the issue is read back, and the person's state stays."""
    issue = await started(hub, "In Progress")

    def interfere(request: Received) -> None:
        if request.method == at:
            hub.service.change(7, state="closed", state_reason="completed")

    hub.server.after = interfere
    with pytest.raises(TrackerError) as refused:
        await hub.tracker.transition(issue, "Review")
    hub.server.after = lambda request: None

    assert refused.value.kind is TrackerErrorKind.CONFLICT
    assert await hub.state(7) == "Done"


async def test_a_read_that_lags_behind_the_write_is_no_conflict(hub: GitHub) -> None:
    """What the change was answered is later than what the read shows."""
    issue = await started(hub, "In Progress")
    hub.service.lags = True

    moved = await hub.tracker.transition(issue, "Review")

    assert moved.state == "Review"
    assert hub.service.names(7) == ["Review"]


FAULTS: dict[str, Callable[[], Fault]] = {
    "a reset before": lambda: Reset(performed=False),
    "a reset after": lambda: Reset(performed=True),
    "half an answer": lambda: Truncate(),
    "truncated JSON": lambda: Truncate(whole=True),
    "HTML": lambda: Html(),
    "a bad gateway": lambda: Html(502),
    "unavailable": lambda: Refuse(status=503),
    "a limit": lambda: Refuse(status=429, headers={"Retry-After": "5"}),
}


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("step", range(4))
async def test_a_move_that_is_cut_off_at_any_request_ends_well(
    hub: GitHub, fault: str, step: int
) -> None:
    """Tried again by who wanted it, it ends with one state, and others' labels stay."""
    await started(hub, "In Progress", "bug")
    hub.server.inject(FAULTS[fault](), skip=step)

    kinds: list[TrackerErrorKind] = []
    for _ in range(3):
        try:
            present = await hub.read(7)
            assert present is not None
            await hub.tracker.transition(present, "Review")
        except TrackerError as exc:
            kinds.append(exc.kind)
        else:
            break

    assert len(kinds) <= 1
    assert set(kinds) <= {TrackerErrorKind.UNAVAILABLE, TrackerErrorKind.CLOSED}
    assert sorted(hub.service.names(7)) == ["Review", "bug"]


async def test_a_move_that_a_crash_cut_off_is_completed(hub: GitHub) -> None:
    """No label of another state is left, and what is whole costs no change."""
    issue = await started(hub, "In Progress", "Review", "bug")
    whole = await started(hub, "Todo")

    await started(hub, "In Progress", "Review", "bug")
    await hub.tracker.complete_move(issue)
    names = hub.service.names(7)
    await hub.tracker.complete_move(replace(whole, state="Review"))

    assert issue.state == "Review"
    assert sorted(names) == sorted(hub.service.names(7)) == ["Review", "bug"]
    assert acts(hub) == ["DELETE labels/In Progress"]


@pytest.mark.parametrize("cut", ["POST", "DELETE"])
async def test_a_lost_answer_is_looked_for_and_the_rest_is_done(hub: GitHub, cut: str) -> None:
    """Nothing that was made is made again."""
    issue = await started(hub, "In Progress")
    hub.server.inject(Reset(performed=True), method=cut)

    moved = await hub.tracker.transition(issue, "Review")

    assert moved.state == "Review"
    assert acts(hub) == ["POST labels", "DELETE labels/In Progress"]


async def test_a_lost_comment_is_found_behind_many_others(hub: GitHub) -> None:
    """All comments since the first try are looked at, and none from before."""
    issue = await started(hub, "Review")
    for _ in range(150):
        hub.service.say(7, "ann", "chatter")
    hub.server.inject(Reset(performed=True), method="POST")

    await hub.tracker.comment(issue, "Done.", "run-1:completion")

    assert hub.server.count("POST", "comments$") == 1
    (looked, *_) = [r for r in hub.server.asked if r.path.endswith("/comments") and r.query]
    assert "since" in looked.query


async def test_a_comment_calls_nobody_and_fits(hub: GitHub) -> None:
    """What an agent said may hold names and be of any length."""
    issue = await started(hub, "Review")
    body = "@ann and x@example.org, `@decorator`: " + "y" * 70_000

    await hub.tracker.comment(issue, body, "run-1:failure")

    (said,) = hub.service.comments[7]
    assert said["body"].startswith("@\u200bann and x@example.org, `@decorator`: yyy")
    assert len(said["body"]) <= 65_536
    assert "shortened" in said["body"]
    assert key_in(said["body"]) == "run-1:failure"


async def test_a_locked_issue_concerns_itself_alone(hub: GitHub) -> None:
    """Other refusals are about the credential or the repository, and are waited out."""
    issue = await started(hub, "Review")
    hub.service.items[7]["locked"] = True
    with pytest.raises(TrackerError) as locked:
        await hub.tracker.comment(issue, "x", "a")
    hub.service.archived = True
    with pytest.raises(TrackerError) as archived:
        await hub.tracker.comment(issue, "x", "a")
    hub.service.archived, hub.service.may_write = False, False
    with pytest.raises(TrackerError) as forbidden:
        await hub.tracker.comment(issue, "x", "a")

    kinds = [error.value.kind for error in (locked, archived, forbidden)]
    closed = TrackerErrorKind.CLOSED
    assert kinds == [TrackerErrorKind.PERMISSION, closed, closed]


async def test_changes_are_made_apart(tmp_path: Path) -> None:
    """As far as the settings say: GitHub asks for a second. Three of them take two gaps at least,
    whatever else the machine does."""
    async with github_opened(tmp_path, {"change_gap_ms": 300}) as hub:
        changes: list[str] = []
        hub.server.before = lambda request: (
            changes.append(request.method) if request.method != "GET" else None
        )
        issue = await started(hub, "Todo")
        began = trio.current_time()
        await hub.tracker.transition(issue, "Review")
        await hub.tracker.comment(replace(issue, state="Review"), "x", "a")
        took = trio.current_time() - began

    assert len(changes) == 3
    assert took >= 0.6
