"""The requests to GitHub's REST API, each as GitHub describes it."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from sortie.http.answers import HttpAnswer
from sortie.http.budget import Use
from sortie.http.client import HttpClient, segment
from sortie.http.pages import next_link, walk
from sortie.http.requests import HttpRequest
from sortie.model import TrackerError, TrackerErrorKind, state_key
from sortie.trackers.github.items import GitHubRepository, labels_of

PAGE = 100

SEARCH_LIMIT = 1000
"""Results of a search that GitHub gives at most."""

_GONE = frozenset({301, 404, 410})
_MISSING = frozenset({404})
_BY_PAGE = ("per_page", PAGE)


class GitHubApi:
    """Asks for one repository. Every method raises TrackerError."""

    def __init__(self, client: HttpClient, repository: GitHubRepository) -> None:
        self._client = client
        self._repository = repository
        owner, name = segment(repository.owner), segment(repository.name)
        self._root = f"/repos/{owner}/{name}"

    async def issues(self, *, closed_too: bool, since: datetime | None = None) -> list[Any]:
        """Return open issues, or closed ones too, or all that changed since a time."""
        state = "all" if closed_too or since is not None else "open"
        params = [("state", state), ("sort", "created"), ("direction", "asc"), _BY_PAGE]
        what = f"cannot list the issues of {self._repository.full_name}"
        return await self._list("/issues", what, [*params, *_since(since)], use=Use.LIST) or []

    async def search(self, query: str) -> list[Any]:
        """Return what a search finds. Raises TrackerError where that is not all there is."""
        found: list[Any] = []
        request = HttpRequest(
            path="/search/issues",
            what="cannot search with tracker.query_filter",
            params=[("q", query), ("sort", "created"), ("order", "asc"), _BY_PAGE],
            use=Use.LIST,
            remember=True,
            budget="search",
            list_at=("items",),
        )

        def take(answer: HttpAnswer) -> HttpRequest | None:
            body = answer.json()
            if (count := body.get("total_count")) is None or count > SEARCH_LIMIT:
                narrow = f"GitHub gives only {SEARCH_LIMIT}; narrow the filter"
                told = f"it finds {count} issues, of which {narrow}"
                raise self._client.error(TrackerErrorKind.INVALID, request, told)
            if body.get("incomplete_results") is not False:
                told = "it ran out of time and is not whole"
                raise self._client.error(TrackerErrorKind.UNAVAILABLE, request, told)
            found.extend(body["items"])
            return next_link(self._client, request, answer)

        await walk(self._client, request, take)
        return found

    async def issue(self, number: str) -> Any | None:
        """Return an issue; None where it was deleted or transferred, or cannot be seen."""
        what = f"cannot read issue {self._repository.identifier(number)}"
        answer = await self._ask(_of(number), what, wanted=_GONE, remember=True)
        return None if answer.status in _GONE else answer.json()

    async def comments(self, number: str, since: datetime | None = None) -> list[Any]:
        """Return the comments of an issue, oldest first."""
        what = f"cannot read the comments of {self._repository.identifier(number)}"
        return await self._list(f"{_of(number)}/comments", what, [_BY_PAGE, *_since(since)]) or []

    async def blockers(self, number: str, use: Use) -> list[Any] | None:
        """Return the issues that one waits for; None where there is no such address."""
        what = f"cannot read what {self._repository.identifier(number)} waits for"
        path = f"{_of(number)}/dependencies/blocked_by"
        return await self._list(path, what, [_BY_PAGE], use=use, wanted=_MISSING)

    async def repository(self) -> Mapping[str, Any]:
        """Return what GitHub tells of the repository. Raises TrackerError (CLOSED) for none."""
        what = f"cannot see the repository {self._repository.full_name}"
        answer = await self._ask("", what, wanted=_GONE, remember=True)
        if answer.status in _GONE:
            why = "it was renamed" if answer.status == 301 else "it is not there, or hidden"
            advice = "check tracker.project and what the credential may see"
            raise TrackerError(TrackerErrorKind.CLOSED, f"{what}: {why}; {advice}")
        return dict(answer.json())

    async def labels(self) -> Mapping[str, str]:
        """Return the labels of the repository, as they are spelled, by ``state_key``."""
        what = f"cannot list the labels of {self._repository.full_name}"
        found = await self._list("/labels", what, [_BY_PAGE])
        return {state_key(name): name for name in labels_of(found)}

    async def create_label(self, name: str) -> None:
        """Make a label; it is no error that it is there."""
        what = f"cannot make the label {name!r} in {self._repository.full_name}"
        await self._write("POST", "/labels", what, {"name": name}, wanted=frozenset({422}))

    async def add_label(self, number: str, name: str) -> tuple[str, ...]:
        """Put a label on an issue and return all that it has."""
        what = f"cannot label {self._repository.identifier(number)} as {name!r}"
        answer = await self._write("POST", f"{_of(number)}/labels", what, {"labels": [name]})
        return labels_of(answer.json())

    async def remove_label(self, number: str, name: str) -> None:
        """Take a label off an issue; it is no error that it was not there."""
        what = f"cannot take {name!r} off {self._repository.identifier(number)}"
        path = f"{_of(number)}/labels/{segment(name)}"
        await self._write("DELETE", path, what, wanted=_MISSING)

    async def set_open(self, number: str, reason: str) -> None:
        """Open an issue (``reopened``) or close it for another reason."""
        state = "open" if reason == "reopened" else "closed"
        what = f"cannot make {self._repository.identifier(number)} {state}"
        await self._write("PATCH", _of(number), what, {"state": state, "state_reason": reason})

    async def post_comment(self, number: str, body: str) -> None:
        """Add a comment."""
        what = f"cannot comment on {self._repository.identifier(number)}"
        await self._write("POST", f"{_of(number)}/comments", what, {"body": body})

    async def _ask(self, path: str, what: str, **more: Any) -> HttpAnswer:
        request = HttpRequest(path=f"{self._root}{path}", what=what, budget="core", **more)
        return await self._client.ask(request)

    async def _write(
        self, method: str, path: str, what: str, body: Any = None, **more: Any
    ) -> HttpAnswer:
        return await self._ask(path, what, method=method, body=body, use=Use.WRITE, **more)

    async def _list(self, path: str, what: str, params: Any, **more: Any) -> list[Any] | None:
        """Return all items of a list in pages; None where it answers with a wanted status."""
        request = HttpRequest(
            path=f"{self._root}{path}",
            what=what,
            params=params,
            remember=True,
            budget="core",
            list_at=(),
            **more,
        )
        found: list[Any] = []
        missing = False

        def take(answer: HttpAnswer) -> HttpRequest | None:
            nonlocal missing
            if not answer.ok:
                missing = True
                return None
            found.extend(answer.json())
            return next_link(self._client, request, answer)

        await walk(self._client, request, take)
        return None if missing else found


def _of(number: str) -> str:
    return f"/issues/{segment(number)}"


def _since(time: datetime | None) -> list[tuple[str, str]]:
    """Return the parameter of a time, none without one."""
    if time is None:
        return []
    return [("since", time.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"))]
