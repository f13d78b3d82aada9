"""The requests that are made to GitLab, and what its answers mean."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from msgspec.structs import replace

from sortie.http.answers import HttpAnswer
from sortie.http.budget import Use
from sortie.http.client import HttpClient, segment
from sortie.http.json_values import mapping_of
from sortie.http.pages import next_link, walk
from sortie.http.requests import HttpRequest
from sortie.model import TrackerError, TrackerErrorKind
from sortie.trackers.gitlab.issues import GitLabIssue, IssueKey, by_key
from sortie.trackers.gitlab.query_filter import Params
from sortie.trackers.gitlab.scope import PAGE, GitLabScope

_MISSING = frozenset({404})
_BY_PAGE = ("per_page", PAGE)
_CREATED = "created_after"
_LIST = (
    ("issue_type", "issue"),
    ("scope", "all"),
    ("order_by", "created_at"),
    ("sort", "asc"),
)


class GitLabApi:
    """Asks one GitLab about one project or group."""

    def __init__(self, client: HttpClient, scope: GitLabScope) -> None:
        self._client = client
        self.scope = scope

    async def user(self) -> GitLabIssue:
        """Return who the token is."""
        request = HttpRequest(path="/user", what="cannot tell whose the token is")
        return _object(await self._about_all(request))

    async def metadata(self) -> GitLabIssue:
        """Return version and edition; empty where the token may not ask."""
        wanted = frozenset({403, 404})
        what = "cannot ask for the version"
        return _object(await self._ask("/metadata", what, wanted=wanted, remember=True))

    async def token(self) -> GitLabIssue:
        """Return what the token may do and until when; empty where it is of another kind."""
        wanted = frozenset({400, 403, 404})
        what = "cannot ask about the token"
        return _object(await self._ask("/personal_access_tokens/self", what, wanted=wanted))

    async def project(self, number: int | None = None) -> GitLabIssue:
        """Return the project that is worked on, or one of the group by its number.

        Raises TrackerError (CLOSED) where it is not there.
        """
        path = self.scope.path if number is None else f"/projects/{number}"
        return _object(await self._of_scope(path, ()))

    async def first_issue(self, more: Params) -> tuple[GitLabIssue | None, int | None]:
        """Return the oldest open issue that passes a filter, and how many do if GitLab tells."""
        params: list[tuple[str, str | int]] = [("state", "opened"), *_LIST, ("per_page", 1), *more]
        answer = await self._of_scope(f"{self.scope.path}/issues", params)
        items = answer.json()
        total = answer.headers.get("x-total", "")
        first = items[0] if isinstance(items, list) and items else None
        count = int(total) if total.isdecimal() else None if first is not None else 0
        return first if isinstance(first, Mapping) else None, count

    async def check_scope(self) -> None:
        """Make sure that issues could be seen. Raises TrackerError (CLOSED) where they could not.

        GitLab says "not found" for what a token may not see, and shows a public project to a
        request without a token, too.
        """
        await self.user()
        if self.scope.is_group:
            await self._of_scope(f"{self.scope.path}/issues", (("per_page", 1), ("scope", "all")))
        else:
            await self.project()

    async def listed(
        self, state: str, since: datetime | None = None, more: Params = ()
    ) -> dict[IssueKey, GitLabIssue]:
        """Return the issues in ``opened``, ``closed`` or ``all``, those changed since a time.

        Sorted by creation, and each page is asked for by the last issue of the one before: what
        leaves the list meanwhile moves none out of the pages that are read.
        """
        params: list[tuple[str, str | int]] = [("state", state), *_LIST, _BY_PAGE]
        if not self.scope.is_group:
            params.append(("pagination", "keyset"))
        if since is not None:
            changed = since.astimezone(UTC).isoformat(timespec="milliseconds")
            params.append(("updated_after", changed.replace("+00:00", "Z")))
        request = HttpRequest(
            path=f"{self.scope.path}/issues",
            what=f"cannot list the issues of {self.scope.name}",
            params=[*params, *more],
            use=Use.LIST,
            remember=True,
        )
        try:
            return by_key(await self._pages(request, by_creation=self.scope.is_group))
        except TrackerError as exc:
            raise _about_all(exc) from exc

    async def read(self, keys: Collection[IssueKey]) -> dict[IssueKey, GitLabIssue]:
        """Return these issues, whatever their states; those that are not there are left out."""
        found: dict[IssueKey, GitLabIssue] = {}
        for project in sorted({key.project for key in keys}):
            iids = sorted(key.iid for key in keys if key.project == project)
            for some in (iids[at : at + PAGE] for at in range(0, len(iids), PAGE)):
                numbers = (("iids[]", iid) for iid in some)
                request = HttpRequest(
                    path=f"/projects/{project}/issues",
                    what=f"cannot read {len(some)} issues of project {project}",
                    params=[("state", "all"), ("scope", "all"), _BY_PAGE, *numbers],
                    wanted=_MISSING,
                    remember=True,
                )
                found |= by_key(await self._pages(request))
        return found

    async def one(self, project: str | int, iid: int) -> GitLabIssue | None:
        """Return an issue as it is at this moment, None where it cannot be found."""
        what = f"cannot read issue {iid} of project {project}"
        path = f"/projects/{segment(project)}/issues/{iid}"
        answer = await self._ask(path, what, wanted=_MISSING)
        return None if answer.status == 404 else _object(answer)

    async def label_events(self, key: IssueKey) -> Sequence[GitLabIssue]:
        """Return who has put labels on an issue and taken them off, oldest first."""
        what = f"cannot read the labels of issue {key.id}"
        path = f"{_path_of(key)}/resource_label_events"
        return await self._pages(HttpRequest(path=path, what=what, params=(_BY_PAGE,)))

    async def notes(
        self, key: IssueKey, *, newest_first: bool = False, with_system: bool = False
    ) -> Sequence[GitLabIssue]:
        """Return the notes of an issue, ``with_system`` also those of GitLab itself. A page of them
        may be short in the middle."""
        request = HttpRequest(
            path=f"{_path_of(key)}/notes",
            what=f"cannot read the comments of issue {key.id}",
            params=(
                ("activity_filter", "all_notes" if with_system else "only_comments"),
                ("order_by", "created_at"),
                ("sort", "desc" if newest_first else "asc"),
                _BY_PAGE,
            ),
            remember=not newest_first,
        )
        return await self._pages(request)

    async def links(self, key: IssueKey) -> Sequence[GitLabIssue]:
        """Return the issues that are linked to one, whichever way; GitLab has no pages of them."""
        request = HttpRequest(
            path=f"{_path_of(key)}/links",
            what=f"cannot read what issue {key.id} is linked to",
            wanted=frozenset({403, 404}),
            remember=True,
        )
        return await self._pages(request)

    async def labels(self, project: str | int) -> tuple[str, ...]:
        """Return the labels of a project and of its groups, as they are spelled."""
        request = HttpRequest(
            path=f"/projects/{segment(project)}/labels",
            what=f"cannot read the labels of project {project}",
            params=(("include_ancestor_groups", "true"), _BY_PAGE),
            remember=True,
        )
        names = (label.get("name") for label in await self._pages(request))
        return tuple(name for name in names if isinstance(name, str))

    async def change(self, key: IssueKey, change: Mapping[str, Any]) -> None:
        """Change an issue. Raises LostAnswer where that may have been done."""
        await self._write("PUT", _path_of(key), f"cannot change issue {key.id}", change)

    async def add_note(self, key: IssueKey, body: str) -> None:
        """Write a comment. Raises LostAnswer where that may have been done."""
        what = f"cannot comment on issue {key.id}"
        answer = await self._write("POST", f"{_path_of(key)}/notes", what, {"body": body})
        if "id" not in _object(answer):
            told = "GitLab took the text for commands, and made no comment"
            raise TrackerError(TrackerErrorKind.INVALID, f"{what}: {told}")

    async def _write(
        self, method: str, path: str, what: str, body: Mapping[str, Any]
    ) -> HttpAnswer:
        try:
            return await self._ask(path, what, method=method, body=body, use=Use.WRITE)
        except TrackerError as exc:
            if exc.kind is TrackerErrorKind.NOT_FOUND:
                await self.check_scope()
            if exc.kind is TrackerErrorKind.PERMISSION and "insufficient_scope" in str(exc):
                raise _about_all(exc) from exc
            raise

    async def _ask(self, path: str, what: str, **more: Any) -> HttpAnswer:
        return await self._client.ask(HttpRequest(path=path, what=what, **more))

    async def _about_all(self, request: HttpRequest) -> HttpAnswer:
        try:
            return await self._client.ask(request)
        except TrackerError as exc:
            raise _about_all(exc) from exc

    async def _of_scope(self, path: str, params: Sequence[tuple[str, str | int]]) -> HttpAnswer:
        what = f"cannot read {'group' if self.scope.is_group else 'project'} {self.scope.name}"
        return await self._about_all(HttpRequest(path=path, what=what, params=params))

    async def _pages(self, first: HttpRequest, *, by_creation: bool = False) -> list[GitLabIssue]:
        """Return what stands on all pages, each as the same object while it has not changed.

        ``by_creation``: each page is asked for by the creation of the last issue that was read.
        GitLab numbers the pages of a group: an issue that leaves the list would move the first one
        of each page behind it to a page that was read. ``created_after`` includes its own instant,
        so that this issue comes once more.
        """
        found: list[GitLabIssue] = []
        request = replace(first, list_at=())
        last: datetime | None = None

        def take(answer: HttpAnswer) -> HttpRequest | None:
            nonlocal request, last
            if not answer.ok:
                return None
            items = answer.json()
            found.extend(items)
            following = next_link(self._client, request, answer)
            if following is not None and by_creation and items:
                created = str(items[-1].get("created_at"))
                at = _time(created)
                # Where all of a page was made in one instant, it is the numbered page.
                if at is not None and (last is None or at > last):
                    own = [(name, value) for name, value in first.params if name != _CREATED]
                    following = replace(first, params=[*own, (_CREATED, created)])
                    last = at
            if following is not None:
                request = replace(following, list_at=())
                return request
            return None

        await walk(self._client, request, take)
        return found


def _path_of(key: IssueKey) -> str:
    return f"/projects/{key.project}/issues/{key.iid}"


def _object(answer: HttpAnswer) -> GitLabIssue:
    return mapping_of(answer.json()) if answer.ok and answer.has_body else {}


def _time(text: str) -> datetime | None:
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        return None


def _about_all(exc: TrackerError) -> TrackerError:
    """Return an error about project, group or token as one that is about no single issue."""
    if exc.kind in (TrackerErrorKind.NOT_FOUND, TrackerErrorKind.PERMISSION):
        return TrackerError(
            TrackerErrorKind.CLOSED,
            f"{exc}; look at tracker.project and at what the token may see",
            retry_after=exc.retry_after,
        )
    return exc
