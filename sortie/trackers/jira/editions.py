"""Jira Cloud and Jira Data Center: what is asked of each, and how they write text.

Both tell of issues in the same form; paths, pages, and the formats of texts differ.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, Protocol

from sortie.http.answers import HttpAnswer
from sortie.http.budget import Use
from sortie.http.client import HttpClient, segment
from sortie.http.json_values import list_of, mapping_of, word_of
from sortie.http.pages import walk
from sortie.http.requests import HttpRequest
from sortie.model import IssueId, TrackerError, TrackerErrorKind
from sortie.trackers.jira import adf, jql, wiki
from sortie.trackers.jira.fields import JIRA_FIELDS

PAGE = 100

RECONCILED = 50
"""Issues that Jira Cloud brings up to date in a search, at most."""

_OVERLAP = 10  # issues of the page before that are asked for again, as some leave meanwhile
_RESTARTS = 3
_FEW = 10


class Edition(Protocol):
    """One kind of Jira."""

    name: str
    api: str

    async def search(
        self, client: HttpClient, query: str, what: str, current: Sequence[IssueId] = ()
    ) -> list[object]:
        """Return all issues of a query, each once. ``current``: those to be read as they are now,
        whatever the index says, where the edition can do that. Raises TrackerError."""

    async def by_ids(
        self, client: HttpClient, ids: Collection[IssueId]
    ) -> tuple[list[object], Mapping[IssueId, TrackerError]]:
        """Return the issues that are there, whatever their project, and those that failed."""

    def read_text(self, value: object) -> str:
        """Return a text of the edition as Markdown."""

    def write_text(self, markdown: str) -> object:
        """Return Markdown as a text of the edition."""


class Cloud(Edition):
    """Version 3 of the API: documents, and pages by token."""

    name = "Jira Cloud"
    api = "/rest/api/3"

    async def search(
        self, client: HttpClient, query: str, what: str, current: Sequence[IssueId] = ()
    ) -> list[object]:
        """See Edition."""
        body: dict[str, Any] = {"jql": query, "fields": list(JIRA_FIELDS), "maxResults": PAGE}
        numbers = [int(issue_id) for issue_id in current if issue_id.isdecimal()]
        if numbers:  # the same on every page
            body["reconcileIssues"] = numbers[-RECONCILED:]
        first = HttpRequest(
            method="POST", path=f"{self.api}/search/jql", what=what, body=body, use=Use.LIST
        )
        found: list[object] = []

        def take(answer: HttpAnswer) -> HttpRequest | None:
            page = mapping_of(answer.json())
            found.extend(_issues_in(client, first, page))
            token = page.get("nextPageToken")
            if page.get("isLast") is True or not token:
                if page.get("isLast") is False:
                    told = "it has more pages, and does not say how to get them"
                    raise client.error(TrackerErrorKind.UNAVAILABLE, first, told)
                return None
            return first_with(nextPageToken=token)

        def first_with(**more: object) -> HttpRequest:
            return HttpRequest(
                method="POST",
                path=first.path,
                what=what,
                body={**body, **more},
                use=Use.LIST,
            )

        await walk(client, first, take)
        return _each_once(found)

    async def by_ids(
        self, client: HttpClient, ids: Collection[IssueId]
    ) -> tuple[list[object], Mapping[IssueId, TrackerError]]:
        """See Edition."""
        found: list[object] = []
        failed: dict[IssueId, TrackerError] = {}
        for some in _parts(list(ids), PAGE):
            request = HttpRequest(
                method="POST",
                path=f"{self.api}/issue/bulkfetch",
                what=f"cannot read {_named(some)}",
                body={"issueIdsOrKeys": some, "fields": list(JIRA_FIELDS)},
            )
            told = mapping_of((await client.ask(request)).json())
            found += _issues_in(client, request, told)
            for error in map(mapping_of, list_of(told.get("issueErrors"))):
                issue_id, why = word_of(error.get("id")), word_of(error.get("errorMessage"))
                failed[IssueId(issue_id)] = client.error(
                    TrackerErrorKind.UNAVAILABLE, request, why or "Jira could not read it now"
                )
        return _each_once(found), failed

    def read_text(self, value: object) -> str:
        """See Edition."""
        return adf.to_markdown(value)

    def write_text(self, markdown: str) -> object:
        """See Edition."""
        from sortie.trackers.jira import adf_writer  # heavy, and for comments only

        return adf_writer.from_markdown(markdown)


class DataCenter(Edition):
    """Version 2 of the API: wiki markup, and pages by number."""

    name = "Jira Data Center"
    api = "/rest/api/2"

    async def search(
        self, client: HttpClient, query: str, what: str, current: Sequence[IssueId] = ()
    ) -> list[object]:
        """See Edition; a list from which many issues leave meanwhile is asked for again."""
        del current  # it has no such thing
        for _ in range(_RESTARTS):
            try:
                return await self._searched(client, query, what)
            except _Shifted:
                continue
        told = f"issues left the list while it was read, {_RESTARTS} times"
        raise TrackerError(TrackerErrorKind.UNAVAILABLE, f"{what}: {told}")

    async def _searched(self, client: HttpClient, query: str, what: str) -> list[object]:
        found: list[object] = []
        totals: list[int] = []

        def page(start: int) -> HttpRequest:
            body = {"jql": query, "fields": list(JIRA_FIELDS), "maxResults": PAGE, "startAt": start}
            return HttpRequest(
                method="POST", path=f"{self.api}/search", what=what, body=body, use=Use.LIST
            )

        def take(answer: HttpAnswer) -> HttpRequest | None:
            told = mapping_of(answer.json())
            issues = _issues_in(client, page(0), told)
            start, total = told.get("startAt"), told.get("total")
            if not isinstance(start, int) or not isinstance(total, int):
                raise client.error(TrackerErrorKind.UNAVAILABLE, page(0), "it has no total")
            found.extend(issues)
            totals.append(total)
            end = start + len(issues)
            if end >= total:
                if total < totals[0] - _OVERLAP * (len(totals) - 1):
                    raise _Shifted
                return None
            if len(issues) <= _OVERLAP:
                raise client.error(TrackerErrorKind.UNAVAILABLE, page(0), "a page is too short")
            return page(end - _OVERLAP)

        await walk(client, page(0), take)
        return _each_once(found)

    async def by_ids(
        self, client: HttpClient, ids: Collection[IssueId]
    ) -> tuple[list[object], Mapping[IssueId, TrackerError]]:
        """See Edition.

        A search needs one request for many, but its index may be behind, and an unknown id may
        fail all of it: a few issues, and what it does not give, are read one by one.
        """
        found: list[object] = []
        if len(ids) > _FEW:
            for some in _parts(list(ids), PAGE):
                found += await self._several(client, some)
        known = {word_of(mapping_of(item).get("id")) for item in found}
        for issue_id in ids:
            if issue_id not in known and (item := await self._one(client, issue_id)) is not None:
                found.append(item)
        return _each_once(found), {}

    async def _several(self, client: HttpClient, ids: Sequence[IssueId]) -> Iterable[object]:
        request = HttpRequest(
            method="POST",
            path=f"{self.api}/search",
            what=f"cannot read {_named(ids)}",
            body={
                "jql": jql.query(jql.one_of("id", ids)),
                "fields": list(JIRA_FIELDS),
                "maxResults": PAGE,
                "startAt": 0,
            },
            wanted=frozenset({400}),
        )
        answer = await client.ask(request)
        if answer.status == 400:
            return ()
        return _issues_in(client, request, mapping_of(answer.json()))

    async def _one(self, client: HttpClient, issue_id: str) -> object | None:
        request = issue_request(self, issue_id, f"cannot read issue {issue_id}")
        answer = await client.ask(request)
        return None if answer.status == 404 else answer.json()

    def read_text(self, value: object) -> str:
        """See Edition."""
        return wiki.to_markdown(value)

    def write_text(self, markdown: str) -> object:
        """See Edition."""
        from sortie.trackers.jira import wiki_writer  # heavy, and for comments only

        return wiki_writer.from_markdown(markdown)


class _Shifted(Exception):
    """More issues have left a list while it was read than its pages overlap."""


def issue_request(edition: Edition, name: str, what: str) -> HttpRequest:
    """Return the question for one issue by id or key; a 404 comes back as an answer."""
    return HttpRequest(
        path=f"{edition.api}/issue/{segment(name)}",
        what=what,
        params=[("fields", ",".join(JIRA_FIELDS))],
        wanted=frozenset({404}),
    )


def _issues_in(client: HttpClient, request: HttpRequest, page: Mapping[str, Any]) -> list[object]:
    issues = page.get("issues")
    if not isinstance(issues, list):
        raise client.error(TrackerErrorKind.UNAVAILABLE, request, "the answer has no issues")
    return issues


def _each_once(items: Iterable[object]) -> list[object]:
    """Return the items without repeats of an id; of two the later one, which is fresher."""
    found: dict[str, object] = {}
    for number, item in enumerate(items):
        found[word_of(mapping_of(item).get("id")) or f"?{number}"] = item
    return list(found.values())


def _parts(ids: Sequence[IssueId], size: int) -> Iterable[Sequence[IssueId]]:
    return (ids[start : start + size] for start in range(0, len(ids), size))


def _named(ids: Sequence[IssueId]) -> str:
    return f"issue {ids[0]}" if len(ids) == 1 else f"{len(ids)} issues"
