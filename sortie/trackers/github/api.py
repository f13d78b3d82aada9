"""The requests to GitHub's REST API, each as GitHub describes it."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from msgspec.structs import replace

from sortie.model import TrackerError, TrackerErrorKind, state_key
from sortie.trackers.github.items import Repository, labels_of
from sortie.trackers.http.answers import Answer
from sortie.trackers.http.budget import Use
from sortie.trackers.http.client import HttpClient, segment
from sortie.trackers.http.pages import next_link, walk
from sortie.trackers.http.requests import Request

PAGE = 100

SEARCH_LIMIT = 1000
"""Results of a search that GitHub gives at most."""

CORE, SEARCH = "core", "search"

_GONE = frozenset({301, 404, 410})


class GitHubApi:
    """Asks for one repository. Every method raises TrackerError."""

    def __init__(self, client: HttpClient, repository: Repository) -> None:
        self._client = client
        self._repository = repository
        owner, name = segment(repository.owner), segment(repository.name)
        self._root = f"/repos/{owner}/{name}"

    def server_now(self) -> datetime:
        """Return the time by GitHub's clock."""
        return self._client.server_now()

    async def issues(self, *, closed_too: bool, since: datetime | None = None) -> list[Any]:
        """Return open issues, or closed ones too, or all that changed since a time."""
        params: list[tuple[str, str | int]] = [
            ("state", "all" if closed_too or since is not None else "open"),
            ("sort", "created"),
            ("direction", "asc"),
            ("per_page", PAGE),
        ]
        if since is not None:
            params.append(("since", _when(since)))
        request = Request(
            path=f"{self._root}/issues",
            what=f"cannot list the issues of {self._repository.full_name}",
            params=params,
            use=Use.LIST,
            remember=True,
            budget=CORE,
        )
        return await self._every(request)

    async def search(self, query: str) -> list[Any]:
        """Return what a search finds. Raises TrackerError where that is not all there is."""
        found: list[Any] = []
        request = Request(
            path="/search/issues",
            what="cannot search with tracker.query_filter",
            params=[("q", query), ("sort", "created"), ("order", "asc"), ("per_page", PAGE)],
            use=Use.LIST,
            remember=True,
            budget=SEARCH,
            list_at=("items",),
        )

        def take(answer: Answer) -> Request | None:
            body = answer.json()
            if body["total_count"] > SEARCH_LIMIT:
                raise self._client.error(
                    TrackerErrorKind.INVALID,
                    request,
                    f"it finds {body['total_count']} issues, of which GitHub gives only "
                    f"{SEARCH_LIMIT}; narrow the filter",
                )
            if body["incomplete_results"]:
                raise self._client.error(
                    TrackerErrorKind.UNAVAILABLE, request, "it ran out of time and is not whole"
                )
            found.extend(body["items"])
            return next_link(self._client, request, answer)

        await self._walk(request, take)
        return found

    async def issue(self, number: str, use: Use = Use.READ) -> Any | None:
        """Return an issue; None where it was deleted or transferred, or cannot be seen."""
        answer = await self._client.ask(
            Request(
                path=f"{self._root}/issues/{segment(number)}",
                what=f"cannot read issue {self._repository.identifier(number)}",
                wanted=_GONE,
                use=use,
                remember=True,
                budget=CORE,
            )
        )
        if answer.status in _GONE:
            return None
        return answer.json()

    async def comments(self, number: str, since: datetime | None = None) -> list[Any]:
        """Return the comments of an issue, oldest first."""
        params: list[tuple[str, str | int]] = [("per_page", PAGE)]
        if since is not None:
            params.append(("since", _when(since)))
        return await self._every(
            Request(
                path=f"{self._root}/issues/{segment(number)}/comments",
                what=f"cannot read the comments of {self._repository.identifier(number)}",
                params=params,
                remember=True,
                budget=CORE,
            )
        )

    async def blockers(self, number: str, use: Use) -> list[Any] | None:
        """Return the issues that one waits for; None where there is no such address."""
        request = Request(
            path=f"{self._root}/issues/{segment(number)}/dependencies/blocked_by",
            what=f"cannot read what {self._repository.identifier(number)} waits for",
            params=[("per_page", PAGE)],
            wanted=frozenset({404}),
            use=use,
            remember=True,
            budget=CORE,
            list_at=(),
        )
        found: list[Any] = []
        missing = False

        def take(answer: Answer) -> Request | None:
            nonlocal missing
            if answer.status == 404:
                missing = True
                return None
            found.extend(answer.json())
            return next_link(self._client, request, answer)

        await self._walk(request, take)
        return None if missing else found

    async def repository(self) -> Mapping[str, Any]:
        """Return what GitHub tells of the repository. Raises TrackerError (CLOSED) for none."""
        answer = await self._client.ask(
            Request(
                path=self._root,
                what=f"cannot see the repository {self._repository.full_name}",
                wanted=_GONE,
                remember=True,
                budget=CORE,
            )
        )
        if answer.status in _GONE:
            why = "it was renamed" if answer.status == 301 else "it is not there, or hidden"
            raise TrackerError(
                TrackerErrorKind.CLOSED,
                f"cannot see the repository {self._repository.full_name}: {why}; "
                "check tracker.project and what the credential may see",
            )
        return dict(answer.json())

    async def labels(self) -> Mapping[str, str]:
        """Return the labels of the repository, as they are spelled, by ``state_key``."""
        found = await self._every(
            Request(
                path=f"{self._root}/labels",
                what=f"cannot list the labels of {self._repository.full_name}",
                params=[("per_page", PAGE)],
                remember=True,
                budget=CORE,
            )
        )
        return {state_key(name): name for name in labels_of(found)}

    async def create_label(self, name: str) -> None:
        """Make a label; it is no error that it is there."""
        await self._client.ask(
            Request(
                method="POST",
                path=f"{self._root}/labels",
                what=f"cannot make the label {name!r} in {self._repository.full_name}",
                body={"name": name},
                use=Use.WRITE,
                wanted=frozenset({422}),
                budget=CORE,
            )
        )

    async def add_label(self, number: str, name: str) -> tuple[str, ...]:
        """Put a label on an issue and return all that it has."""
        answer = await self._client.ask(
            Request(
                method="POST",
                path=f"{self._root}/issues/{segment(number)}/labels",
                what=f"cannot label {self._repository.identifier(number)} as {name!r}",
                body={"labels": [name]},
                use=Use.WRITE,
                budget=CORE,
            )
        )
        return labels_of(answer.json())

    async def remove_label(self, number: str, name: str) -> None:
        """Take a label off an issue; it is no error that it was not there."""
        await self._client.ask(
            Request(
                method="DELETE",
                path=f"{self._root}/issues/{segment(number)}/labels/{segment(name)}",
                what=f"cannot take {name!r} off {self._repository.identifier(number)}",
                use=Use.WRITE,
                wanted=frozenset({404}),
                budget=CORE,
            )
        )

    async def set_open(self, number: str, reason: str) -> Any:
        """Open an issue (``reopened``) or close it for another reason, and return it."""
        state = "open" if reason == "reopened" else "closed"
        answer = await self._client.ask(
            Request(
                method="PATCH",
                path=f"{self._root}/issues/{segment(number)}",
                what=f"cannot make {self._repository.identifier(number)} {state}",
                body={"state": state, "state_reason": reason},
                use=Use.WRITE,
                budget=CORE,
            )
        )
        return answer.json()

    async def post_comment(self, number: str, body: str) -> None:
        """Add a comment."""
        await self._client.ask(
            Request(
                method="POST",
                path=f"{self._root}/issues/{segment(number)}/comments",
                what=f"cannot comment on {self._repository.identifier(number)}",
                body={"body": body},
                use=Use.WRITE,
                budget=CORE,
            )
        )

    async def _every(self, request: Request) -> list[Any]:
        """Return all items of a list in pages."""
        found: list[Any] = []

        def take(answer: Answer) -> Request | None:
            found.extend(answer.json())
            return next_link(self._client, request, answer)

        await self._walk(replace(request, list_at=()), take)
        return found

    async def _walk(self, request: Request, take: Any) -> None:
        try:
            await walk(self._client, request, take)
        except (KeyError, TypeError) as exc:
            raise self._client.error(
                TrackerErrorKind.UNAVAILABLE, request, f"the answer has another shape: {exc!r}"
            ) from exc


def _when(time: datetime) -> str:
    return time.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
