"""Comments: all of them, none that is not for everybody, and each made once."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from sortie.model import Issue, IssueId, TrackerError, TrackerErrorKind
from tests.trackers.jira.conftest import Jira
from tests.trackers.jira.server import JiraService
from tests.trackers.server.exchange import Reply
from tests.trackers.server.faults import Fault, Html, Instead, Refuse, Reset

POST, PATH = "POST", "/issue/10001/comment$"


async def first(jira: Jira) -> Issue:
    """Return the issue PROJ-1."""
    jira.service.put(1)
    found = await jira.tracker.find("PROJ-1")
    assert found is not None
    return found


def body(service: JiraService, text: str) -> Any:
    """Return a text in the format of the edition."""
    paragraph = {"type": "paragraph", "content": [{"type": "text", "text": text}]}
    return {"type": "doc", "version": 1, "content": [paragraph]} if service.cloud else text


def texts(jira: Jira) -> list[str]:
    """Return what the comments say, as they are stored."""
    found = jira.service.issues[10001].comments
    return [str(comment.body) for comment in found]


async def read(jira: Jira) -> Issue:
    """Read PROJ-1 again."""
    (issue,) = (await jira.tracker.fetch_by_ids([IssueId("10001")])).issues
    return issue


async def test_comments_of_all_pages_are_read(jira: Jira) -> None:
    """The oldest first, each once, also where pages are shorter than asked."""
    jira.service.page_limit = 40
    record = jira.service.put(1)
    for number in range(130):
        jira.service.add_comment(record, body(jira.service, f"remark {number}"))

    issue = await read(jira)

    assert [comment.body for comment in issue.comments] == [f"remark {n}" for n in range(130)]


async def test_comments_of_an_unchanged_issue_are_not_asked_for_again(jira: Jira) -> None:
    """A re-read of running issues costs no look at all their comments; a new one is seen."""
    record = jira.service.put(1)
    jira.service.add_comment(record, body(jira.service, "one"))
    await read(jira)
    jira.asked()

    same = await read(jira)
    of_same = jira.asked()
    jira.service.add_comment(record, body(jira.service, "two"))
    jira.service.edit(1)
    more = await read(jira)

    assert sum("comment" in told for told in of_same) == 0
    assert ([c.body for c in same.comments], len(more.comments)) == (["one"], 2)


async def test_comments_for_some_only_stay_out_of_prompts(jira: Jira) -> None:
    """Unless the settings want them."""
    record = jira.service.put(1)
    jira.service.add_comment(record, body(jira.service, "for all"))
    jira.service.add_comment(
        record, body(jira.service, "secret"), visibility={"type": "role", "value": "Developers"}
    )

    issue = await read(jira)
    async with jira.opened({"restricted_comments": True}) as tracker:
        (whole,) = (await tracker.fetch_by_ids([IssueId("10001")])).issues

    assert [comment.body for comment in issue.comments] == ["for all"]
    assert [comment.body for comment in whole.comments] == ["for all", "secret"]


async def test_a_comment_carries_its_key_where_nobody_sees_it(jira: Jira) -> None:
    """As a property; the text is what was said."""
    issue = await first(jira)

    await jira.tracker.comment(issue, "All **done**", "run-7:completion")

    (made,) = jira.service.issues[10001].comments
    assert made.properties == [{"key": "sortie", "value": "run-7:completion"}]
    assert [(c.author, c.body) for c in (await read(jira)).comments] == [("sortie", "All **done**")]


def gone(reply: Reply) -> Reply:
    """Return a failure in the place of a success."""
    return Reply(status=504, body=b"<html>timeout</html>", content_type="text/html", sound=False)


MADE: dict[str, Fault] = {"reset": Reset(performed=True), "504": Instead(gone)}


@pytest.mark.parametrize("tells", [True, False], ids=["tells properties", "tells none"])
@pytest.mark.parametrize("fault", MADE.values(), ids=MADE)
async def test_a_comment_whose_answer_was_lost_is_found(
    jira: Jira, fault: Fault, tells: bool
) -> None:
    """It is there once, and that is a success, also where Jira tells of no properties; what said
    the same earlier is not taken for it."""
    jira.service.tells_properties = tells
    record = jira.service.put(1)
    old = jira.service.add_comment(record, body(jira.service, "done"), "sortie")
    assert old.created is not None
    old.created -= timedelta(hours=1)
    issue = await first(jira)
    jira.server.inject(fault, method=POST, path=PATH)

    await jira.tracker.comment(issue, "done", "run-7:completion")

    assert len(texts(jira)) == 2
    assert jira.server.count(method=POST, path=PATH) == 1


NOT_MADE: dict[str, tuple[Fault, TrackerErrorKind]] = {
    "reset": (Reset(performed=False), TrackerErrorKind.UNAVAILABLE),
    "502": (Refuse(status=502), TrackerErrorKind.CLOSED),
    "403": (Refuse(status=403), TrackerErrorKind.PERMISSION),
    "a page": (Html(), TrackerErrorKind.UNAVAILABLE),
}


@pytest.mark.parametrize("tells", [True, False], ids=["tells properties", "tells none"])
@pytest.mark.parametrize(("fault", "kind"), NOT_MADE.values(), ids=NOT_MADE)
async def test_a_comment_that_was_not_made_is_an_error_and_is_made_by_the_next_try(
    jira: Jira, fault: Fault, kind: TrackerErrorKind, tells: bool
) -> None:
    """One that said the same for an earlier run is not taken for it."""
    jira.service.tells_properties = tells
    issue = await first(jira)
    await jira.tracker.comment(issue, "done", "run-6:completion")
    for comment in jira.service.issues[10001].comments:
        assert comment.created is not None
        comment.created -= timedelta(hours=1)
    jira.server.inject(fault, method=POST, path=PATH)

    with pytest.raises(TrackerError) as told:
        await jira.tracker.comment(issue, "done", "run-7:completion")
    lost = len(texts(jira))
    await jira.tracker.comment(issue, "done", "run-7:completion")

    assert (told.value.kind, lost, len(texts(jira))) == (kind, 1, 2)


@pytest.mark.parametrize("newest_first", [True, False])
async def test_a_lost_comment_is_found_among_many(jira: Jira, newest_first: bool) -> None:
    """Whether Jira obeys the order that was asked for or not."""
    jira.service.newest_first = newest_first
    record = jira.service.put(1)
    for number in range(120):
        jira.service.add_comment(record, body(jira.service, f"remark {number}"))
    issue = await first(jira)
    jira.server.inject(Reset(performed=True), method=POST, path=PATH)

    await jira.tracker.comment(issue, "done", "run-7:completion")

    assert len(texts(jira)) == 121


async def test_a_comment_that_cannot_be_looked_for_is_looked_for_next_time(jira: Jira) -> None:
    """The answer is lost and so is the look: the next try looks before it makes another."""
    issue = await first(jira)
    jira.server.inject(Reset(performed=True), method=POST, path=PATH)
    jira.server.inject(Refuse(status=503), method="GET", path="/comment$")

    with pytest.raises(TrackerError):
        await jira.tracker.comment(issue, "done", "run-7:completion")
    await jira.tracker.comment(issue, "done", "run-7:completion")

    assert len(texts(jira)) == 1


async def test_a_long_comment_is_taken(jira: Jira) -> None:
    """It is cut, says so, and fails no handoff."""
    issue = await first(jira)

    await jira.tracker.comment(issue, "too much ö\n" * 20_000, "run-7:completion")

    (comment,) = (await read(jira)).comments
    assert "Sortie left out" in comment.body


async def test_a_comment_on_an_issue_that_is_gone_is_not_found(jira: Jira) -> None:
    """Nothing is made in its place."""
    issue = await first(jira)
    jira.service.lose(1)

    with pytest.raises(TrackerError) as told:
        await jira.tracker.comment(issue, "done", "run-7:completion")

    assert told.value.kind is TrackerErrorKind.NOT_FOUND
