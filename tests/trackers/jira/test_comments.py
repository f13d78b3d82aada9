"""Comments: all of them, none that is not for everybody, and each made once."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from sortie.model import Issue, IssueId
from tests.trackers.jira.conftest import Jira
from tests.trackers.jira.server import JiraService
from tests.trackers.server.exchange import Reply
from tests.trackers.server.faults import Fault, Instead, Reset

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
