"""What is said in pull requests: comments, answers, reactions, labels; and who may write."""

from __future__ import annotations

import pytest
from trio.testing import MockClock

from sortie.model import TrackerError, TrackerErrorKind
from sortie.model.pull_requests import ReviewThread
from tests.forges.rig import Rig
from tests.trackers.server.faults import Refuse, Reset


async def test_an_answer_in_a_thread_is_given_once(rig: Rig) -> None:
    """Also after a lost answer, and in a later life of the program."""
    rig.push()
    async with rig.opened() as forge:
        opened = await rig.open_one(forge)
        rig.service.start_thread(1, "ann", "src/a.py", 1, "Why?")
        thread = (await forge.look([opened]))[opened.id].threads[0]
        lost = Reset(performed=True)
        rig.server.inject(lost, method="POST", path="/(replies|notes|comments)$")
        await forge.reply(opened, thread, "Because @bob said so\n/close", "key-1")
    async with rig.opened() as forge:
        await forge.look([opened])
        await forge.reply(opened, ReviewThread(id=thread.id), "Because", "key-1")
        await forge.reply(opened, ReviewThread(id=thread.id), "And so", "key-2")
        state = (await forge.look([opened]))[opened.id]

    if rig.kind == "gitea":  # which has no answers in threads
        said = [note.body for note in state.comments]
        assert all(text.startswith("About `src/a.py:1`:") for text in said)
    else:
        said = [note.body for note in state.threads[0].notes[1:]]
    assert len(said) == 2
    assert "@bob" not in said[0]
    if rig.kind == "gitlab":
        assert not [line for line in said[0].splitlines() if line.startswith("/")]


async def test_an_answer_in_a_thread_that_is_gone_is_refused(rig: Rig) -> None:
    """Gitea's stands in no thread."""
    rig.push()
    async with rig.opened() as forge:
        opened = await rig.open_one(forge)
        if rig.kind == "gitea":
            await forge.reply(opened, ReviewThread(id="7"), "Because", "key")
            return
        with pytest.raises(TrackerError) as refused:
            await forge.reply(opened, ReviewThread(id="gone"), "Because", "key")

    assert refused.value.kind is TrackerErrorKind.NOT_FOUND


async def test_a_comment_is_made_once_in_all_lives(rig: Rig) -> None:
    """The mark is looked for on every page."""
    rig.push()
    async with rig.opened() as forge:
        opened = await rig.open_one(forge)
        rig.server.inject(Reset(performed=True), method="POST")
        await forge.comment(opened, "Done", "key")
        for at in range(120):
            rig.service.add_comment(1, "ann", f"{at}")
    async with rig.opened() as forge:
        await forge.comment(opened, "Done", "key")

    assert len(rig.service.requests[0].comments) == 121


async def test_who_has_asked_sees_that_it_was_seen(rig: Rig) -> None:
    """Once; a comment that is gone is no error; one of a thread is another one."""
    rig.push()
    async with rig.opened() as forge:
        opened = await rig.open_one(forge)
        comment = rig.service.add_comment(1, "ann", "/sortie retry")
        rig.service.start_thread(1, "ann", "README", 1, "Why?")
        state = (await forge.look([opened]))[opened.id]
        await forge.acknowledge(opened, state.comments[0])
        await forge.acknowledge(opened, state.comments[0])
        await forge.acknowledge(opened, state.threads[0].notes[0])
        rig.service.request(1).comments.clear()
        await forge.acknowledge(opened, state.comments[0])

    assert comment.reactions == ["eyes"]
    assert rig.service.requests[0].threads[0].notes[0].reactions == ["eyes"]


async def test_labels_are_put_on_and_taken_off(rig: Rig) -> None:
    """One that the repository does not have is left out, and not made."""
    rig.push()
    rig.service.labels = ("sortie", "needs work/now?")
    async with rig.opened() as forge:
        opened = await rig.open_one(forge)
        await forge.label(opened, add=["sortie", "needs work/now?", "absent"])
        put = (await forge.look([opened]))[opened.id].labels
        await forge.label(opened, remove=["sortie", "absent"])
        await forge.label(opened)
        left = (await forge.look([opened]))[opened.id].labels

    assert set(put) == {"sortie", "needs work/now?"}
    assert left == ("needs work/now?",)
    assert "absent" not in rig.service.labels


async def test_a_label_of_the_organization_is_taken_off(gitea: Rig) -> None:
    """Though it is none of the repository."""
    gitea.push()
    gitea.service.labels_above = ("sortie:fix",)
    async with gitea.opened() as forge:
        opened = await gitea.open_one(forge)
        gitea.service.set_labels(1, "sortie", "sortie:fix")
        await forge.label(opened, remove=["Sortie:fix"])
        left = (await forge.look([opened]))[opened.id].labels

    assert left == ("sortie",)


async def test_gitea_says_who_may_write_to_an_administrator_alone(gitea: Rig) -> None:
    """The error says what the account of the token has to be."""
    async with gitea.opened() as forge:
        gitea.server.inject(Refuse(status=403), path="/permission$")
        with pytest.raises(
            TrackerError, match="on Gitea has to administer the repository"
        ) as refused:
            await forge.may_write("ann")

    assert refused.value.kind is TrackerErrorKind.PERMISSION


async def test_who_may_write_is_remembered_for_a_while(rig: Rig, mock_clock: MockClock) -> None:
    """A name is one part of a path, whatever it holds."""
    rig.service.people = ("ann", "bob", "eve", "../ann")
    rig.service.permissions = {"ann": "write", "bob": "admin", "eve": "read"}
    async with rig.opened() as forge:
        names = ("ann", "bob", "eve", "nobody", "", "../ann")
        found = {name: await forge.may_write(name) for name in names}
        asked = len(rig.server.asked)
        rig.service.permissions["ann"] = "read"
        before = await forge.may_write("Ann")
        assert len(rig.server.asked) == asked
        mock_clock.jump(301)
        after = await forge.may_write("ann")

    assert found == {
        "ann": True,
        "bob": True,
        "eve": False,
        "nobody": False,
        "": False,
        "../ann": False,
    }
    assert (before, after) == (True, False)


async def test_that_it_cannot_be_asked_is_no_answer(rig: Rig) -> None:
    """Who may write is not said then."""
    async with rig.opened() as forge:
        rig.server.inject(Refuse(status=500), times=2)
        with pytest.raises(TrackerError):
            await forge.may_write("ann")
        rig.server.heal()
        assert await forge.may_write("ann")


@pytest.mark.parametrize("status", [403, 429])
async def test_a_limit_is_not_a_refusal(github: Rig, status: int) -> None:
    """It says when GitHub may be asked again, whatever is asked."""
    github.push()
    headers = {"x-ratelimit-remaining": "0", "retry-after": "7"}
    async with github.opened() as forge:
        opened = await github.open_one(forge)
        limit = Refuse(status=status, body={"message": "API rate limit"}, headers=headers)
        check = github.service.set_check("main", "test", "failure")
        github.server.inject(limit, path="rerequest|rerun|permission|merge$", times=2)
        errors = []
        for ask in (lambda: forge.may_write("ann"), lambda: forge.merge(opened, "x", "merge")):
            with pytest.raises(TrackerError) as refused:
                await ask()
            errors.append(refused.value)

    assert check.state == "failure"
    assert [error.kind for error in errors] == [TrackerErrorKind.UNAVAILABLE] * 2
    assert errors[0].retry_after == 7
