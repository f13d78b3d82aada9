"""What is read of merge requests by GraphQL is what is read by REST, and what is done where GraphQL
does not tell."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from structlog.testing import capture_logs
from trio.testing import MockClock

from sortie.forges.gitlab.batches import BATCH, REFUSED_LIFE
from sortie.forges.gitlab.nodes import QUERY
from sortie.model import TrackerError
from tests.forges.gitlab_face import GitLabFace
from tests.forges.gitlab_graphql import MOST_COMPLEX, complexity_of
from tests.forges.rig import BRANCH, Rig
from tests.forges.test_costs import branches
from tests.forges.test_looking import look
from tests.trackers.server.exchange import Reply
from tests.trackers.server.faults import Html, Instead, Refuse

Change = Callable[[Rig], object]


def _talked(rig: Rig) -> None:
    service = rig.service
    service.review(1, "ann", "changes_requested", "No")
    service.review(1, "bob", "approved")
    service.review(1, "eve", "commented", "Hm")
    thread = service.start_thread(1, "bob", "src/a.py", 3, "Why?")
    service.say_in(1, thread, "ann", "So")
    service.resolve(1, service.start_thread(1, "bob", "README", 1, "Typo"))
    service.add_comment(1, "project_7_bot_0a1b", "I looked", bot=True)
    service.set_labels(1, "sortie", "bot")


def _outdated(rig: Rig) -> None:
    rig.service.start_thread(1, "ann", "README", 1, "Why?")
    rig.push()


def _checked(rig: Rig) -> None:
    service = rig.service
    for state in ("failure", "success", "cancelled", "skipped", "pending", "neutral"):
        service.set_check(BRANCH, f"of {state}", state)
    service.set_check(BRANCH, "may fail", "failure", allow_failure=True)
    service.set_check(BRANCH, "ci/other", "success", status=True)
    service.required = ("of failure",)


def _only_told(rig: Rig) -> None:
    rig.service.set_check(BRANCH, "ci/other", "failure", status=True)


def _merged_result(rig: Rig) -> None:
    service = rig.service
    service.merged_results = True
    head, main = service.git.heads()[BRANCH], service.git.heads()["main"]
    service.set_check(service.git.merged(main, head), "test", "failure")
    service.set_check(BRANCH, "lint", "success", status=True)


def _lagging(rig: Rig) -> None:
    rig.service.set_check(BRANCH, "test", "success")
    rig.push()
    rig.service.observe()
    rig.service.request(1).lagging = True


def _conflicting(rig: Rig) -> None:
    rig.push(BRANCH, "README", "ours\n")
    rig.push("main", "README", "theirs\n")


def _behind(rig: Rig) -> None:
    rig.service.wants_up_to_date = True
    rig.push("main", "other.txt")


def _queued(rig: Rig) -> None:
    service = rig.service
    service.required = ("test",)
    service.set_check(BRANCH, "test", "pending")
    service.request(1).queued = "merge"


def _unapproved(rig: Rig) -> None:
    rig.service.approvals = 2


def _unresolved(rig: Rig) -> None:
    rig.service.wants_resolved = True
    rig.service.start_thread(1, "ann", "README", 1, "Why?")


def _draft(rig: Rig) -> None:
    rig.service.request(1).draft = True


def _computing(rig: Rig) -> None:
    rig.service.request(1).computing = True


def _long(rig: Rig) -> None:
    for at in range(101):
        rig.service.set_check(BRANCH, f"check {at}", "success")
        rig.service.add_comment(1, "ann", f"comment {at}")


def _long_thread(rig: Rig) -> None:
    thread = rig.service.start_thread(1, "ann", "README", 1, "note 0")
    for at in range(101):
        rig.service.say_in(1, thread, "ann", f"note {at}")


def _many_labels(rig: Rig) -> None:
    rig.service.set_labels(1, *(f"label {at}" for at in range(101)))


STATES: tuple[Change, ...] = (
    lambda _rig: None,
    _talked,
    _outdated,
    _checked,
    _only_told,
    _merged_result,
    _lagging,
    _conflicting,
    _behind,
    _queued,
    _unapproved,
    _unresolved,
    _draft,
    _computing,
    _long,
    _long_thread,
    _many_labels,
    lambda rig: rig.service.close(1),
    lambda rig: rig.service.merge(rig.service.request(1), "merge"),
    lambda rig: rig.service.gone.add(1),
)


def questions(rig: Rig) -> int:
    """Return how many questions GraphQL was asked."""
    return rig.server.count(path="graphql")


@pytest.mark.parametrize("change", STATES)
async def test_both_ways_tell_the_same(gitlab: Rig, mock_clock: MockClock, change: Change) -> None:
    """In each state: alone, among others, and as it is read before a merge, which is by REST."""
    gitlab.push()
    gitlab.push("sortie/T-2")
    async with gitlab.opened() as forge:
        opened = [await gitlab.open_one(forge, name) for name in (BRANCH, "sortie/T-2")]
        change(gitlab)
        alone = await forge.look(opened[:1])
        asked = questions(gitlab)
        assert asked == 1
        by_rest = await forge.look(opened, afresh=True)
        assert questions(gitlab) == asked
        mock_clock.jump(2 * REFUSED_LIFE)
        together = await forge.look(opened)
        assert questions(gitlab) == asked + 1
        named = await forge.look(opened, changed={one.id: "talk" for one in opened})

    assert alone == {id_: state for id_, state in by_rest.items() if id_ == opened[0].id}
    assert together == by_rest
    assert named == by_rest


def test_the_question_is_within_the_limits_of_gitlab() -> None:
    """Also for who has no token, so that a server may be stricter."""
    assert complexity_of(QUERY) <= 200 < MOST_COMPLEX
    dearer = QUERY.replace("pipelines(first: 10)", "pipelines(first: 100)")
    assert complexity_of(dearer) > complexity_of(QUERY)


async def test_a_batch_costs_one_question(gitlab: Rig) -> None:
    """One list of those that there are, and a question for each fifty."""
    names = branches(gitlab, BATCH + 1, alike=True)
    async with gitlab.opened() as forge:
        watched = [await gitlab.open_one(forge, name) for name in names]
        asked = len(gitlab.server.asked)
        found = await forge.look(watched)
        paths = [one.path.rpartition("/")[2] for one in gitlab.server.asked[asked:]]

    assert len(found) == BATCH + 1
    assert paths == ["merge_requests", "graphql", "graphql"]


async def test_gitlab_is_asked_to_compute_conflicts(gitlab: Rig) -> None:
    """Which GraphQL does not."""
    gitlab.push()
    async with gitlab.opened() as forge:
        opened = await gitlab.open_one(forge)
        _computing(gitlab)
        asked = len(gitlab.server.asked)
        await forge.look([opened])
        paths = [one.path.rpartition("/")[2] for one in gitlab.server.asked[asked:]]

    assert paths == ["graphql", "1"]


def _errors(text: str) -> Refuse:
    return Refuse(status=200, body={"errors": [{"message": text}], "data": None})


REFUSALS = {
    "no such address": Refuse(status=404),
    "not for this token": Refuse(status=403),
    "an old server": _errors("Field 'autoMergeEnabled' doesn't exist on type 'MergeRequest'"),
    "stricter": _errors("Query has complexity of 128, which exceeds max complexity of 100"),
    "not shown": Refuse(status=200, body={"data": {"project": None}}),
    "something else": Refuse(status=200, body={"data": {"project": {"mergeRequests": 7}}}),
}


@pytest.mark.parametrize("refusal", REFUSALS.values(), ids=REFUSALS)
async def test_a_server_that_refuses_is_asked_by_rest_for_an_hour(
    gitlab: Rig, mock_clock: MockClock, refusal: Refuse
) -> None:
    """And it is logged once."""
    gitlab.push()
    _checked(gitlab)
    async with gitlab.opened() as forge:
        opened = await gitlab.open_one(forge)
        by_rest = await forge.look([opened], afresh=True)
        gitlab.server.inject(refusal, path="graphql", times=2)
        with capture_logs() as logged:
            found = [await forge.look([opened]) for _ in range(3)]
            assert questions(gitlab) == 1
            mock_clock.jump(REFUSED_LIFE)
            found.append(await forge.look([opened]))
            assert questions(gitlab) == 2
            mock_clock.jump(REFUSED_LIFE)
            found.append(await forge.look([opened]))
            found.append(await forge.look([opened]))
            assert questions(gitlab) == 4

    assert found == [by_rest] * 6
    assert [entry["event"] for entry in logged] == ["forge.graphql_refused"]


async def test_checks_that_may_not_be_seen_are_not_none(gitlab: Rig) -> None:
    """GraphQL shows none then; REST says that they may not be seen."""
    gitlab.push()
    gitlab.service.set_check(BRANCH, "test", "failure")
    face = gitlab.service.face
    assert isinstance(face, GitLabFace)
    face.graphql.may_see_checks = False
    async with gitlab.opened() as forge:
        opened = await gitlab.open_one(forge)
        gitlab.server.inject(Refuse(status=403), path="/statuses$")
        with pytest.raises(TrackerError, match="403"):
            await forge.look([opened])


@pytest.mark.parametrize("fault", [Html(200), Refuse(status=500), _errors("Timeout on Note.body")])
async def test_less_is_asked_for_where_gitlab_fails_over_it(
    gitlab: Rig, mock_clock: MockClock, fault: Any
) -> None:
    """For an hour: a large question may take it too long."""
    names = branches(gitlab, 20, alike=True)
    async with gitlab.opened() as forge:
        watched = [await gitlab.open_one(forge, name) for name in names]
        gitlab.server.inject(fault, path="graphql")
        asked = len(gitlab.server.asked)
        found = await forge.look(watched)
        cost = len(gitlab.server.asked) - asked
        changed = {one.id: "all" for one in watched}
        before = questions(gitlab)
        await forge.look(watched, changed=changed)  # type: ignore[arg-type]
        smaller = questions(gitlab) - before
        mock_clock.jump(REFUSED_LIFE)
        await forge.look(watched, changed=changed)  # type: ignore[arg-type]
        whole = questions(gitlab) - before - smaller

    assert len(found) == 20
    assert (cost, smaller, whole) == (1 + 1 + 4, 4, 1)


async def test_one_over_which_gitlab_fails_is_read_by_rest(gitlab: Rig) -> None:
    """However often it is asked."""
    gitlab.push()
    async with gitlab.opened() as forge:
        opened = await gitlab.open_one(forge)
        gitlab.server.inject(Refuse(status=500), path="graphql", times=9)
        found = [await forge.look([opened]) for _ in range(2)]

    assert [opened.id in one for one in found] == [True, True]
    assert questions(gitlab) == 2


async def test_a_pause_that_gitlab_asks_for_is_kept(gitlab: Rig) -> None:
    """And REST is not asked instead."""
    gitlab.push()
    async with gitlab.opened() as forge:
        opened = await gitlab.open_one(forge)
        refusal = Refuse(status=429, headers={"Retry-After": "30"})
        gitlab.server.inject(refusal, path="graphql")
        asked = len(gitlab.server.asked)
        with pytest.raises(TrackerError) as paused:
            await forge.look([opened])

    assert paused.value.retry_after == 30
    assert len(gitlab.server.asked) == asked + 1


async def test_checks_of_a_commit_that_gitlab_has_not_taken_in_are_read_by_rest(
    gitlab: Rig,
) -> None:
    """The commits of a merge request come later than its head."""
    gitlab.push()
    _checked(gitlab)
    async with gitlab.opened() as forge:
        opened = await gitlab.open_one(forge)
        by_rest = await forge.look([opened], afresh=True)

        def spoil(reply: Reply) -> Reply:
            (node,) = reply.body["data"]["project"]["mergeRequests"]["nodes"]
            node["commits"]["nodes"][0] |= {"sha": "0" * 40}
            node["commits"]["nodes"][0]["pipelines"]["nodes"] = []
            return reply

        gitlab.server.inject(Instead(spoil), path="graphql")
        found = await forge.look([opened])

    assert found == by_rest


async def test_what_was_read_by_a_delivery_is_compared_once_more(
    gitlab: Rig, mock_clock: MockClock
) -> None:
    """GraphQL tells no times that a list could be compared with: the next list has it read, and no
    list after that."""
    gitlab.push()
    gitlab.push("sortie/T-2")
    async with gitlab.opened() as forge:
        opened = [await gitlab.open_one(forge, name) for name in (BRANCH, "sortie/T-2")]
        await forge.look(opened)
        mock_clock.jump(400)
        await forge.look(opened)
        gitlab.service.add_comment(1, "ann", "Hello")
        said = await look(forge, opened[0])
        counts = []
        for _ in range(3):
            before = questions(gitlab)
            state = (await forge.look(opened, told=True))[opened[0].id]
            counts.append(questions(gitlab) - before)

    assert state == said
    assert counts == [1, 0, 0]
