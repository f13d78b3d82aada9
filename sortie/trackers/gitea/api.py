"""The requests to Gitea's API about one repository."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import trio

from sortie.http.answers import HttpAnswer
from sortie.http.budget import Use
from sortie.http.client import HttpClient, segment
from sortie.http.gitea import PAGE
from sortie.http.pages import next_link, walk
from sortie.http.requests import HttpRequest
from sortie.model import IssueId
from sortie.trackers.gitea.items import GiteaItem, GiteaReader

MISSING = frozenset({404})

DEPENDENCIES_LIFE = 600.0
"""Seconds for which what an issue waits for is not asked for again while it has not changed."""

_DEPENDENCIES_REMEMBERED = 2000


class GiteaApi:
    """Asks about one repository. Every method raises TrackerError."""

    def __init__(self, client: HttpClient, reader: GiteaReader) -> None:
        self._client = client
        self._reader = reader
        owner, _, name = reader.name.partition("/")
        self.root = f"/repos/{segment(owner)}/{segment(name)}"
        self._dependencies: dict[IssueId, tuple[object, float, list[Mapping[str, Any]]]] = {}

    def path(self, issue_id: IssueId) -> str:
        """Return the path of an issue. Raises NOT_FOUND for what is no number of one."""
        return self._reader.path(issue_id)

    async def ask(self, path: str, what: str, **more: Any) -> HttpAnswer:
        """Ask about the repository."""
        return await self._client.ask(HttpRequest(path=f"{self.root}{path}", what=what, **more))

    async def write(self, method: str, path: str, what: str, body: Any = None, **more: Any) -> Any:
        """Change something, and return what the answer says."""
        answer = await self.ask(path, what, method=method, body=body, use=Use.WRITE, **more)
        return answer.json() if answer.ok and answer.has_body else None

    async def pages(
        self, path: str, what: str, params: Sequence[tuple[str, str | int]] = (), **more: Any
    ) -> list[Mapping[str, Any]]:
        """Return all items of a list, none where there is no such address and that is wanted."""
        request = HttpRequest(
            path=f"{self.root}{path}",
            what=what,
            params=[*params, ("limit", PAGE)],
            list_at=(),
            remember=True,
            **more,
        )
        found: list[Mapping[str, Any]] = []

        def take(answer: HttpAnswer) -> HttpRequest | None:
            if not answer.ok:
                return None
            found.extend(answer.json())
            return next_link(self._client, request, answer)

        await walk(self._client, request, take)
        return found

    async def issue(self, issue_id: IssueId) -> GiteaItem | None:
        """Return an issue as it is at this moment, None where it is not there."""
        what = f"cannot read issue {self._reader.identifier(issue_id)}"
        answer = await self.ask(self.path(issue_id), what, wanted=MISSING)
        return self._reader.item(answer.json()) if answer.ok else None

    async def dependencies(self, item: GiteaItem, use: Use) -> list[Mapping[str, Any]]:
        """Return the issues that one waits for, as they were when it was last changed, or later.

        A new one changes the issue, so that not every list asks for those of all issues.
        """
        now, issue_id = trio.current_time(), item.issue.id
        known = self._dependencies.pop(issue_id, None)
        is_old = known is None or known[0] != item.updated_at or now - known[1] > DEPENDENCIES_LIFE
        if known is None or is_old or use is not Use.LIST:
            path, what = (
                f"{self.path(issue_id)}/dependencies",
                "cannot read what an issue waits for",
            )
            known = item.updated_at, now, await self.pages(path, what, use=use, wanted=MISSING)
        self._dependencies[issue_id] = known
        while len(self._dependencies) > _DEPENDENCIES_REMEMBERED:
            del self._dependencies[next(iter(self._dependencies))]
        return known[2]
