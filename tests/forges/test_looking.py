"""How pull requests stand, as every forge tells it."""

from __future__ import annotations

from pathlib import Path

from trio.testing import MockClock

from sortie.forges import Forge
from sortie.model import PullRequest
from sortie.model.pull_requests import PullRequestState
from tests.forges.rig import BRANCH, Rig
from tests.workspaces.remotes import git


async def look(forge: Forge, one: PullRequest, *, afresh: bool = False) -> PullRequestState:
    """Look at one pull request that is there."""
    return (await forge.look([one], afresh=afresh))[one.id]


async def test_a_branch_that_conflicts_says_so(rig: Rig, mock_clock: MockClock) -> None:
    """And is not called so while the forge computes it."""
    rig.push(BRANCH, "README", "ours\n")
    async with rig.opened() as forge:
        opened = await rig.open_one(forge)
        fine = await look(forge, opened)
        rig.service.request(1).computing = True
        computing = await look(forge, opened, afresh=True)
        rig.service.request(1).computing = False
        rig.push("main", "README", "theirs\n")
        await look(forge, opened)
        mock_clock.jump(10)
        conflicting = await look(forge, opened)

    assert fine.conflicts is False
    assert computing.conflicts is None
    assert conflicting.conflicts is True


async def test_reviews_threads_comments_and_labels_come(rig: Rig) -> None:
    """The newest opinion of each, with the commit that was seen; and who is a program."""
    first = rig.push()
    async with rig.opened() as forge:
        opened = await rig.open_one(forge)
        service = rig.service
        service.review(1, "ann", "changes_requested", "Not so")
        service.review(1, "bob", "approved")
        thread = service.start_thread(1, "bob", "src/a.py", 1, "Why?")
        service.say_in(1, thread, "ann", "Indeed")
        done = service.start_thread(1, "bob", "README", 1, "Typo")
        service.resolve(1, done)
        service.add_comment(1, "ann", "/sortie retry")
        service.set_labels(1, "bot")
        state = await look(forge, opened)
        second = rig.push()
        service.review(1, "ann", "approved")
        later = await look(forge, opened)

    opinions = {said.author: said for said in state.reviews}
    assert {name: said.state for name, said in opinions.items()} == {
        "ann": "changes_requested",
        "bob": "approved",
    }
    (open_one,) = [found for found in state.threads if not found.resolved]
    (resolved,) = [found for found in state.threads if found.resolved]
    assert (open_one.path, open_one.line, open_one.outdated) == ("src/a.py", 1, False)
    assert [(note.author, note.body) for note in open_one.notes] == [
        ("bob", "Why?"),
        ("ann", "Indeed"),
    ]
    assert resolved.path == "README"
    assert [(note.author, note.body) for note in state.comments] == [("ann", "/sortie retry")]
    assert state.labels == ("bot",)
    assert {said.author: said.state for said in later.reviews}["ann"] == "approved"
    assert {found.outdated for found in later.threads} == {rig.kind != "gitea"}  # does not say it
    if rig.kind != "gitlab":
        assert opinions["ann"].head == first
        assert {said.author: said.head for said in later.reviews}["ann"] == second
        assert opinions["ann"].body == "Not so"


async def test_gitea_tells_on_which_side_of_the_diff_a_thread_is(gitea: Rig) -> None:
    """``position`` is a line of the new version, ``original_position`` one of the old: 0 in one of
    them says nothing about age, and line 5 of both is two conversations."""
    gitea.push()
    async with gitea.opened() as forge:
        opened = await gitea.open_one(forge)
        gitea.service.start_thread(1, "ann", "src/a.py", 5, "Why?")
        gitea.service.start_thread(1, "bob", "src/a.py", 5, "Why not?", removed=True)
        state = await look(forge, opened)

    threads = [
        (found.path, found.line, found.outdated, len(found.notes)) for found in state.threads
    ]
    assert threads == [("src/a.py", 5, False, 1)] * 2


async def test_a_program_is_known_for_one(rig: Rig) -> None:
    """By what the forge says of its account: GitLab by the name that it gives to one."""
    rig.push()
    names = ["helper"]
    if rig.kind == "gitlab":
        names = ["project_7_bot_0a1b", "group_7_bot", "service_account_group_7_0a1b"]
    async with rig.opened() as forge:
        opened = await rig.open_one(forge)
        for name in names:
            rig.service.add_comment(1, name, "I looked", bot=True)
        rig.service.add_comment(1, "ann", "And I")
        state = await look(forge, opened)

    assert [note.bot for note in state.comments] == [*(True for _ in names), False]
    if rig.kind == "github":
        assert state.comments[0].author == "helper[bot]"


async def test_a_comment_of_a_reviewer_takes_no_opinion_away(rig: Rig) -> None:
    """What they say later without one is a comment, or their review where they have none."""
    rig.push()
    async with rig.opened() as forge:
        opened = await rig.open_one(forge)
        rig.service.review(1, "ann", "changes_requested", "No")
        rig.service.review(1, "ann", "commented", "Still no")
        rig.service.review(1, "bob", "commented", "Hm")
        state = await look(forge, opened)
        for note in state.comments:
            await forge.acknowledge(opened, note)

    assert {said.author: said.state for said in state.reviews} == {
        "ann": "changes_requested",
        "bob": "commented",
    }
    if rig.kind != "gitlab":  # which has no texts of reviews
        assert [note.body for note in state.comments] == ["Still no"]


async def test_a_refusal_is_told_where_it_is_not_for_the_checks(rig: Rig) -> None:
    """In the forge's own word."""
    rig.push()
    service = rig.service
    async with rig.opened() as forge:
        opened = await rig.open_one(forge)
        fine = await look(forge, opened)
        service.required = ("test",)
        service.set_check(BRANCH, "test", "failure")
        for_checks = await look(forge, opened, afresh=True)
        service.set_check(BRANCH, "test", "success")
        service.approvals = 1
        unapproved = await look(forge, opened, afresh=True)
        service.approvals, service.wants_resolved = 0, True
        service.start_thread(1, "ann", "README", 1, "Why?")
        unresolved = await look(forge, opened, afresh=True)

    assert (fine.refusal, for_checks.refusal) == (None, None)
    words = {
        "github": ("review_required", "blocked"),
        "gitlab": ("not_approved", "discussions_not_resolved"),
        "gitea": (None, None),
    }
    assert (unapproved.refusal, unresolved.refusal) == words[rig.kind]


async def test_merged_closed_and_gone(rig: Rig) -> None:
    """What is gone is left out."""
    for at in (1, 2, 3, 4):
        rig.push(f"sortie/T-{at}")
    async with rig.opened() as forge:
        opened = [await rig.open_one(forge, f"sortie/T-{at}") for at in (1, 2, 3, 4)]
        await forge.merge(opened[0], opened[0].head or "", "merge")
        rig.service.close(2)
        rig.service.gone.add(3)
        found = await forge.look(opened)

    states = {state.pull_request.number: state.pull_request.state for state in found.values()}
    assert states == {1: "merged", 2: "closed", 4: "open"}


async def test_what_is_longer_than_a_page_is_whole(rig: Rig) -> None:
    """Checks, comments, threads, and the notes of one."""
    rig.push()
    for at in range(130):
        rig.service.set_check(BRANCH, f"check {at}", "success")
    async with rig.opened() as forge:
        opened = await rig.open_one(forge)
        for at in range(120):
            rig.service.add_comment(1, "ann", f"comment {at}")
        thread = rig.service.start_thread(1, "ann", "README", 1, "note 0")
        for at in range(1, 45):
            rig.service.say_in(1, thread, "ann", f"note {at}")
        for at in range(30):
            rig.service.start_thread(1, "ann", f"file {at}", 1, "Here")
        state = await look(forge, opened)

    assert len({check.id for check in state.checks}) == 130
    assert [note.body for note in state.comments] == [f"comment {at}" for at in range(120)]
    assert len(state.threads) == 31
    (long,) = [found for found in state.threads if found.path == "README"]
    assert [note.body for note in long.notes] == [f"note {at}" for at in range(45)]


async def test_a_branch_that_has_to_be_brought_up_to_date_is_not_left_to_the_forge(
    rig: Rig,
) -> None:
    """It would wait for that for ever; and no refusal keeps it from being brought up to date."""
    head = rig.push()
    service = rig.service
    service.wants_up_to_date = True
    rig.push("main", "other.txt")
    async with rig.opened() as forge:
        opened = await rig.open_one(forge)
        behind = await look(forge, opened)
        assert await forge.bring_up_to_date(opened, head)
        mended = await look(forge, opened)
        service.queue = True
        rig.push("main", "third.txt")
        in_queue = await look(forge, opened)

    assert (behind.refusal, behind.queued) == (None, False)
    assert behind.automatic is (rig.kind == "gitea")  # which does not say it
    assert (mended.automatic, mended.refusal) == (True, None)
    if rig.kind == "github":
        assert in_queue.automatic  # a queue brings the base in by itself


async def test_work_is_real(rig: Rig, tmp_path: Path) -> None:
    """The repository behind the forge is one of git."""
    rig.push()
    async with rig.opened() as forge:
        opened = await rig.open_one(forge)

    assert git(tmp_path / "remote.git", "rev-parse", BRANCH) == opened.head
