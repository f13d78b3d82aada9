"""The requests that are made to GitLab, and what its answers mean."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from msgspec.structs import replace

from sortie.model import TrackerError, TrackerErrorKind
from sortie.trackers import RateBudget
from sortie.trackers.gitlab.group_pages import GroupPages
from sortie.trackers.gitlab.issues import IssueKey, Item, by_key
from sortie.trackers.gitlab.provider import PAGE, Scope
from sortie.trackers.gitlab.query_filter import Params
from sortie.trackers.http.answers import Answer
from sortie.trackers.http.budget import Use
from sortie.trackers.http.client import HttpClient, segment
from sortie.trackers.http.pages import next_link, walk
from sortie.trackers.http.requests import Request


class GitLabApi:
    """Asks one GitLab about one project or group."""

    def __init__(self, client: HttpClient, scope: Scope) -> None:
        self._client = client
        self.scope = scope

    @property
    def server_time(self) -> tuple[datetime, float] | None:
        """What GitLab's clock said last, and when by trio's; None: it has said nothing."""
        return self._client.server_time

    def budgets(self) -> Sequence[RateBudget]:
        """Return what GitLab has told of its limits; a self-managed one may have none."""
        return self._client.budgets()

    def list_pause(self) -> float:
        """Return how far apart lists should be, so that requests last."""
        return self._client.list_pause()

    async def user(self) -> Item:
        """Return who the token is."""
        answer = await self._ask("/user", "cannot tell whose the token is")
        return _mapping(answer)

    async def metadata(self) -> Item:
        """Return version and edition; empty where the token may not ask."""
        request = Request(
            path="/metadata",
            what="cannot ask for the version",
            wanted=frozenset({403, 404}),
            remember=True,
        )
        answer = await self._client.ask(request)
        return _mapping(answer) if answer.ok else {}

    async def token(self) -> Item:
        """Return what the token may do and until when; empty where it is of another kind."""
        request = Request(
            path="/personal_access_tokens/self",
            what="cannot ask about the token",
            wanted=frozenset({400, 403, 404}),
        )
        answer = await self._client.ask(request)
        return _mapping(answer) if answer.ok else {}

    async def project(self) -> Item:
        """Return the project that is worked on. Raises TrackerError (CLOSED): it is not there."""
        return _mapping(await self._of_scope(self.scope.path, ()))

    async def project_of(self, number: int) -> Item:
        """Return a project of the group by its number."""
        return _mapping(await self._of_scope(f"/projects/{number}", ()))

    async def first_issue(self, more: Params) -> tuple[Item | None, int | None]:
        """Return the oldest open issue that passes a filter, and how many do if GitLab tells."""
        params: list[tuple[str, str | int]] = [
            ("state", "opened"),
            ("issue_type", "issue"),
            ("scope", "all"),
            ("order_by", "created_at"),
            ("sort", "asc"),
            ("per_page", 1),
            *more,
        ]
        answer = await self._of_scope(f"{self.scope.path}/issues", params)
        items = answer.json()
        total = answer.headers.get("x-total", "")
        first = items[0] if isinstance(items, list) and items else None
        count = int(total) if total.isdecimal() else None if first is not None else 0
        return first if isinstance(first, Mapping) else None, count

    async def check_scope(self) -> None:
        """Make sure that issues could be seen. Raises TrackerError (CLOSED) where they could not.

        GitLab says "not found" for what a token may not see, and a public project is seen by
        nobody in particular, too.
        """
        await self.user()
        if self.scope.is_group:
            await self._of_scope(f"{self.scope.path}/issues", (("per_page", 1), ("scope", "all")))
        else:
            await self.project()

    async def listed(
        self, state: str, since: datetime | None = None, more: Params = ()
    ) -> dict[IssueKey, Item]:
        """Return the issues in ``opened``, ``closed`` or ``all``, those changed since a time.

        Sorted by creation, and each page is asked for by the last issue of the one before: what
        leaves the list meanwhile moves none out of the pages that are read.
        """
        params: list[tuple[str, str | int]] = [
            ("state", state),
            ("issue_type", "issue"),
            ("scope", "all"),
            ("order_by", "created_at"),
            ("sort", "asc"),
            ("per_page", PAGE),
        ]
        if not self.scope.is_group:
            params.append(("pagination", "keyset"))
        if since is not None:
            changed = since.astimezone(UTC).isoformat(timespec="milliseconds")
            params.append(("updated_after", changed.replace("+00:00", "Z")))
        request = Request(
            path=f"{self.scope.path}/issues",
            what=f"cannot list the issues of {self.scope.name}",
            params=[*params, *more],
            use=Use.LIST,
            remember=True,
        )
        following = GroupPages(request).following if self.scope.is_group else None
        try:
            found = by_key(await self._pages(request, following))
        except TrackerError as exc:
            raise _about_all(exc) from exc
        return found

    def list_ended(self) -> None:
        """Note that the list is whole: what it cost is what the next one is expected to cost."""
        self._client.list_ended()

    async def read(self, keys: Collection[IssueKey]) -> dict[IssueKey, Item]:
        """Return these issues, whatever their states; those that are not there are left out."""
        found: dict[IssueKey, Item] = {}
        for project in sorted({key.project for key in keys}):
            iids = sorted(key.iid for key in keys if key.project == project)
            for some in (iids[at : at + PAGE] for at in range(0, len(iids), PAGE)):
                request = Request(
                    path=f"/projects/{project}/issues",
                    what=f"cannot read {len(some)} issues of project {project}",
                    params=[
                        ("state", "all"),
                        ("scope", "all"),
                        ("per_page", PAGE),
                        *(("iids[]", iid) for iid in some),
                    ],
                    wanted=frozenset({404}),
                    remember=True,
                )
                found |= by_key(await self._pages(request))
        return found

    async def one(self, project: str | int, iid: int) -> Item | None:
        """Return an issue as it is at this moment, None where it cannot be found."""
        request = Request(
            path=f"/projects/{segment(project)}/issues/{iid}",
            what=f"cannot read issue {iid} of project {project}",
            wanted=frozenset({404}),
        )
        answer = await self._client.ask(request)
        return None if answer.status == 404 else _mapping(answer)

    async def notes(self, key: IssueKey, *, newest_first: bool = False) -> Sequence[Item]:
        """Return the notes of an issue. A page of them may be short in the middle."""
        request = Request(
            path=f"/projects/{key.project}/issues/{key.iid}/notes",
            what=f"cannot read the comments of issue {key.id}",
            params=(
                ("activity_filter", "only_comments"),
                ("order_by", "created_at"),
                ("sort", "desc" if newest_first else "asc"),
                ("per_page", PAGE),
            ),
            remember=not newest_first,
        )
        return await self._pages(request)

    async def links(self, key: IssueKey) -> Sequence[Item]:
        """Return the issues that are linked to one, whichever way; GitLab has no pages of them."""
        request = Request(
            path=f"/projects/{key.project}/issues/{key.iid}/links",
            what=f"cannot read what issue {key.id} is linked to",
            wanted=frozenset({403, 404}),
            remember=True,
        )
        return await self._pages(request)

    async def labels(self, project: str | int) -> tuple[str, ...]:
        """Return the labels of a project and of its groups, as they are spelled."""
        request = Request(
            path=f"/projects/{segment(project)}/labels",
            what=f"cannot read the labels of project {project}",
            params=(("include_ancestor_groups", "true"), ("per_page", PAGE)),
            remember=True,
        )
        names = (label.get("name") for label in await self._pages(request))
        return tuple(name for name in names if isinstance(name, str))

    async def change(self, key: IssueKey, change: Mapping[str, Any]) -> None:
        """Change an issue. Raises LostAnswer where that may have been done."""
        request = Request(
            method="PUT",
            path=f"/projects/{key.project}/issues/{key.iid}",
            what=f"cannot change issue {key.id}",
            body=change,
            use=Use.WRITE,
        )
        await self._write(request)

    async def add_note(self, key: IssueKey, body: str) -> None:
        """Write a comment. Raises LostAnswer where that may have been done."""
        request = Request(
            method="POST",
            path=f"/projects/{key.project}/issues/{key.iid}/notes",
            what=f"cannot comment on issue {key.id}",
            body={"body": body},
            use=Use.WRITE,
        )
        answer = await self._write(request)
        if "id" not in _mapping(answer):
            told = "it took the text for commands, and made no comment"
            raise self._client.error(TrackerErrorKind.INVALID, request, told)

    async def _write(self, request: Request) -> Answer:
        try:
            return await self._client.ask(request)
        except TrackerError as exc:
            if exc.kind is TrackerErrorKind.NOT_FOUND:
                await self.check_scope()
            if exc.kind is TrackerErrorKind.PERMISSION and "insufficient_scope" in str(exc):
                raise _about_all(exc) from exc
            raise

    async def _ask(self, path: str, what: str) -> Answer:
        try:
            return await self._client.ask(Request(path=path, what=what))
        except TrackerError as exc:
            raise _about_all(exc) from exc

    async def _of_scope(self, path: str, params: Sequence[tuple[str, str | int]]) -> Answer:
        what = f"{'group' if self.scope.is_group else 'project'} {self.scope.name}"
        request = Request(path=path, what=f"cannot read {what}", params=params)
        try:
            return await self._client.ask(request)
        except TrackerError as exc:
            raise _about_all(exc) from exc

    async def _pages(
        self, first: Request, following_of: Callable[[Request, object], Request] | None = None
    ) -> list[Item]:
        """Return what stands on all pages, each as the same object while it has not changed.

        ``following_of`` returns what to ask instead of the page that GitLab calls the next one.
        """
        found: list[Item] = []
        request = replace(first, list_at=())

        def take(answer: Answer) -> Request | None:
            nonlocal request
            if not answer.ok:
                return None
            items = answer.json()
            found.extend(items)
            following = next_link(self._client, request, answer)
            if following is not None and following_of is not None:
                following = following_of(following, items[-1] if items else None)
                following = replace(following, list_at=())
            request = following or request
            return following

        await walk(self._client, request, take)
        return found


def _mapping(answer: Answer) -> Item:
    body = answer.json() if answer.has_body else {}
    return body if isinstance(body, Mapping) else {}


def _about_all(exc: TrackerError) -> TrackerError:
    """Return an error about project, group or token as one that is about no single issue."""
    if exc.kind in (TrackerErrorKind.NOT_FOUND, TrackerErrorKind.PERMISSION):
        return TrackerError(
            TrackerErrorKind.CLOSED,
            f"{exc}; look at tracker.project and at what the token may see",
            retry_after=exc.retry_after,
        )
    return exc
