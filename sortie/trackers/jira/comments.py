"""Comments of an issue: read in pages, made once, and found again by a property.

The property of a comment is seen by nobody in Jira's pages. Where an edition does not tell of
properties, a comment of ours is known by its text and by when it was made.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

from msgspec import Struct

from sortie.http.answers import HttpAnswer
from sortie.http.budget import Use
from sortie.http.client import HttpClient, segment
from sortie.http.comments import fitted
from sortie.http.json_values import list_of, mapping_of, time_of, word_of
from sortie.http.pages import walk
from sortie.http.requests import HttpRequest, Params
from sortie.model import Comment, Issue
from sortie.trackers.jira.editions import Cloud, Edition
from sortie.trackers.jira.people import person_of
from sortie.trackers.jira.site import Site

PROPERTY = "sortie"

JIRA_COMMENT_LIMIT = 32_767
"""Characters of a comment as it is sent; longer ones are refused."""

_PAGE = 100
_LOOKED_AT = 50  # newest comments, among which a lost one is looked for
_SKEW = timedelta(minutes=2)


def comments_path(edition: Edition, issue_id: str) -> str:
    """Return where the comments of an issue are."""
    return f"{edition.api}/issue/{segment(issue_id)}/comment"


async def read_comments(
    client: HttpClient, edition: Edition, issue: Issue, *, restricted: bool
) -> tuple[Comment, ...]:
    """Return all comments, the oldest first; ``restricted``: also those not for everybody."""
    path = comments_path(edition, issue.id)
    what = f"cannot read the comments on {issue.identifier}"
    found: dict[str, Mapping[str, Any]] = {}

    def page(start: int) -> HttpRequest:
        params: Params = [("startAt", start), ("maxResults", _PAGE), ("orderBy", "created")]
        return HttpRequest(path=path, what=what, params=params, list_at=("comments",))

    def take(answer: HttpAnswer) -> HttpRequest | None:
        told = mapping_of(answer.json())
        comments = [mapping_of(it) for it in list_of(told.get("comments"))]
        found.update({word_of(it.get("id")): it for it in comments})
        start, total = told.get("startAt"), told.get("total")
        end = (start if isinstance(start, int) else 0) + len(comments)
        more = comments and isinstance(total, int) and end < total
        return page(end) if more else None

    await walk(client, page(0), take)
    seen = [it for it in found.values() if restricted or not _is_restricted(it)]
    return tuple(_comment(it, edition) for it in seen)


def _is_restricted(told: Mapping[str, Any]) -> bool:
    return bool(mapping_of(told.get("visibility"))) or told.get("jsdPublic") is False


def _comment(told: Mapping[str, Any], edition: Edition) -> Comment:
    """Return a comment; one whose time cannot be read has none."""
    author = person_of(told.get("author"))
    try:
        created = time_of(told.get("created"), "created")
    except ValueError:
        created = None
    return Comment(
        author=author.name or author.login or "somebody",
        body=edition.read_text(told.get("body")),
        created_at=created,
        author_id=author.login or None,
    )


class NewComment(Struct, frozen=True, kw_only=True):
    """A comment that is to be made, or was perhaps made, on an issue."""

    client: HttpClient
    site: Site
    issue: Issue
    body: object
    key: str | None
    not_before: datetime | None  # by the server's clock, when it was first tried

    async def post(self) -> None:
        """Make it. Raises TrackerError, LostAnswer where it may have been made."""
        properties = [] if self.key is None else [{"key": PROPERTY, "value": self.key}]
        await self.client.ask(
            HttpRequest(
                method="POST",
                path=comments_path(self.site.edition, self.issue.id),
                what=f"cannot comment on {self.issue.identifier}",
                body={"body": self.body, **({"properties": properties} if properties else {})},
                use=Use.WRITE,
            )
        )

    async def is_there(self) -> bool:
        """Tell whether it is among the newest comments."""
        newest = await self._newest()
        with_properties = [it for it in newest if isinstance(it.get("properties"), list)]
        if newest and not with_properties and isinstance(self.site.edition, Cloud):
            newest = with_properties = await self._with_properties(newest)
        if any(self._is_marked(it) for it in with_properties):
            return True
        untold = [it for it in newest if not isinstance(it.get("properties"), list)]
        return any(self._is_same(it) for it in untold)

    async def _newest(self) -> list[Mapping[str, Any]]:
        """Return the newest comments, also where the server orders them the other way round."""
        told = await self._page([("orderBy", "-created"), ("maxResults", _LOOKED_AT)])
        comments = list_of(told.get("comments"))
        total = told.get("total")
        if isinstance(total, int) and total > len(comments):
            start = max(0, total - _LOOKED_AT)
            last = await self._page([("startAt", start), ("maxResults", _LOOKED_AT)])
            comments = [*comments, *list_of(last.get("comments"))]
        return [mapping_of(it) for it in comments]

    async def _page(self, params: list[tuple[str, str | int]]) -> Mapping[str, Any]:
        if not isinstance(self.site.edition, Cloud):
            params = [*params, ("expand", "properties")]
        request = HttpRequest(
            path=comments_path(self.site.edition, self.issue.id),
            what=f"cannot look for a comment on {self.issue.identifier}",
            params=params,
            list_at=("comments",),
        )
        return mapping_of((await self.client.ask(request)).json())

    async def _with_properties(self, comments: list[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
        ids = {int(i) for it in comments if (i := word_of(it.get("id"))).isdecimal()}
        request = HttpRequest(
            method="POST",
            path=f"{self.site.edition.api}/comment/list",
            what=f"cannot look for a comment on {self.issue.identifier}",
            params=[("expand", "properties")],
            body={"ids": sorted(ids)},
            list_at=("values",),
        )
        told = mapping_of((await self.client.ask(request)).json())
        return [mapping_of(it) for it in list_of(told.get("values"))]

    def _is_marked(self, told: Mapping[str, Any]) -> bool:
        return any(
            mapping_of(it).get("key") == PROPERTY and mapping_of(it).get("value") == self.key
            for it in list_of(told.get("properties"))
        )

    def _is_same(self, told: Mapping[str, Any]) -> bool:
        """Tell whether a comment without properties says the same, by us, since the first try."""
        read = self.site.edition.read_text
        if self.not_before is None:
            return False
        try:
            is_since = time_of(told.get("created"), "created") >= self.not_before - _SKEW
        except ValueError:
            return False
        is_ours = person_of(told.get("author")).id == self.site.me.id
        return is_since and is_ours and read(told.get("body")) == read(self.body)


def body_of(edition: Edition, markdown: str) -> object:
    """Return the body of a comment, cut where Jira would take no such long one."""

    def size(text: object) -> int:
        return len(text) if isinstance(text, str) else len(json.dumps(text))

    return fitted(markdown, JIRA_COMMENT_LIMIT, edition.write_text, size)
