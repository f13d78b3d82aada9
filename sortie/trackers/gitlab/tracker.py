"""The GitLab tracker: issues of a project or of a group.

Rule 1: an issue that cannot be seen is missing only while the project or group can be seen.
Rule 2: an issue whose label was renamed has no state, rather than another one.
Rule 3: a move is one request, so that an issue is never between two states.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any

import trio
from msgspec.structs import replace

from sortie.http.client import HttpClient, open_client
from sortie.http.comments import OnceOnly, fitted, is_marked, marked
from sortie.http.credentials import header
from sortie.http.gitlab import PROVIDER
from sortie.http.gitlab_notes import GITLAB_NOTE_LIMIT, harmless
from sortie.model import Comment, Issue, IssueId, TrackerError, TrackerErrorKind, same_state
from sortie.model import state_key as key_of_state
from sortie.model.checks import Check
from sortie.trackers import TrackerContext, TrackerStates, UnreadableIssue
from sortie.trackers.gitlab.api import GitLabApi
from sortie.trackers.gitlab.checks import GitLabChecks
from sortie.trackers.gitlab.issue_list import OpenIssues
from sortie.trackers.gitlab.issues import (
    CLOSED,
    GitLabIssue,
    IssueKey,
    IssueReader,
    comments_of,
    gitlab_states,
    is_moved,
    key_of,
    key_of_id,
    labels_of,
    path_of,
)
from sortie.trackers.gitlab.links import IssueLinks
from sortie.trackers.gitlab.names import places_of
from sortie.trackers.gitlab.people import GitLabPeople
from sortie.trackers.gitlab.project_labels import ProjectLabels
from sortie.trackers.gitlab.query_filter import parsed
from sortie.trackers.gitlab.scope import GitLabScope
from sortie.trackers.gitlab.settings import DEFAULT_ENDPOINT, GitLabSettings, api_of
from sortie.trackers.http.listed import unreadable_issue
from sortie.trackers.http.tracker import CommentMemory, HttpTracker

_MARK_ROOM = 300  # characters that the mark of a comment may take


@asynccontextmanager
async def opened(context: TrackerContext) -> AsyncIterator[GitLabTracker]:
    """Hold the client open for as long as the tracker is."""
    assert context.api_key is not None
    credential = header("PRIVATE-TOKEN", context.api_key)
    endpoint = api_of(context.endpoint or DEFAULT_ENDPOINT)
    async with open_client(PROVIDER, endpoint, credential, context.progress) as client:
        yield GitLabTracker(client, context)


class GitLabTracker(HttpTracker[GitLabIssue]):
    """Issues of one project or group."""

    def __init__(self, client: HttpClient, context: TrackerContext) -> None:
        super().__init__(client)
        settings = context.settings
        assert isinstance(settings, GitLabSettings)
        assert context.project is not None
        self._settings = settings
        self._project: int | None = None
        name = context.project.strip("/")
        scope = GitLabScope(name=name, is_group=settings.scope == "group")
        self._root = name if scope.is_group else ""
        self.api = GitLabApi(client, scope)
        self.reader = IssueReader(
            gitlab_states(context.states, settings.label_prefix),
            {key_of_state(label): priority for label, priority in settings.priorities.items()},
            self._root,
            with_confidential=settings.confidential,
        )
        self.people = GitLabPeople(client, self.api)
        self._labels = ProjectLabels(self.api)
        self._filter = parsed(context.query_filter)
        self._open = OpenIssues(self.api, self._filter)
        self._links = IssueLinks(self.api, is_wanted=settings.blockers)
        self._notes = CommentMemory()
        self._comments = OnceOnly()
        self._made: dict[IssueKey, tuple[GitLabIssue, Issue]] = {}

    def configure(self, states: TrackerStates) -> None:
        """Tell states apart by these names from now on."""
        self.reader.labels = gitlab_states(states, self._settings.label_prefix)
        self._labels.forget()
        self._made.clear()

    def checks(self) -> Sequence[Check]:
        """Return what ``sortie doctor`` asks GitLab."""
        return GitLabChecks(self.client, self.api, self.reader, self._filter).checks()

    async def fetch_candidates(self, states: Collection[str]) -> Sequence[Issue]:
        """Return the issues in these states, without comments."""
        wanted = set(map(key_of_state, states))
        if not wanted:
            return ()
        await self._learn_project()
        known: Mapping[IssueKey, GitLabIssue]
        if CLOSED in wanted or self.reader.labels.has_closed(wanted):
            known = await self.api.listed("all")
        else:
            known = await self._open.refresh(trio.current_time())
        self.client.list_ended()
        readable, unreadable = await self._readable(known)
        candidates = [
            (issue, known[key])
            for key, issue in readable.items()
            if key_of_state(issue.state) in wanted
        ]
        seen = {**self._open.seen(), **known}
        await self._links.look_ahead(candidates, self.reader, seen)
        found = [
            replace(issue, blocked_by=self._links.blocked_by(key_of(item), self.reader, seen))
            for issue, item in candidates
        ]
        made = self._made
        return self._listed.take(found, unreadable, lambda: [issue for _, issue in made.values()])

    async def find(self, name: str) -> Issue | None:
        """Return the issue of that identifier, id, or reference such as ``group/project#7``."""
        await self._learn_project()
        for project, iid in places_of(name, project=self._project, root=self._root):
            item = await self.api.one(project, iid)
            if item is not None and self._is_there(item):
                return await self._whole(item)
        return None

    async def comment(
        self, issue: Issue, body: str, key: str | None = None, *, again: bool = False
    ) -> None:
        """Write a note in which no line is an order to GitLab, and nobody is called."""
        await self._learn_project()
        where = self._key_of(issue)
        text = marked(fitted(body, GITLAB_NOTE_LIMIT - _MARK_ROOM, harmless, len), key)

        async def is_there() -> bool:
            notes = await self.api.notes(where, newest_first=True)
            return any(is_marked(str(note.get("body")), key or "") for note in notes)

        await self._comments.make(
            key, lambda: self.api.add_note(where, text), is_there, tried=again
        )

    async def _learn_project(self) -> None:
        """Learn the number of the project once: it stays when the project is renamed."""
        if self._project is not None or self.api.scope.is_group:
            return
        project = await self.api.project()
        number, path = project.get("id"), project.get("path_with_namespace")
        if not isinstance(number, int) or not isinstance(path, str):
            raise TrackerError(
                TrackerErrorKind.UNAVAILABLE,
                f"GitLab does not say which project {self.api.scope.name} is",
            )
        self._project, self._root = number, path
        self.reader.root = path
        self.api.scope = replace(self.api.scope, number=number)

    def _key_of(self, issue: Issue) -> IssueKey:
        key = key_of_id(issue.id)
        if key is None or not self._is_ours(key):
            what = f"{issue.identifier} ({issue.id}) is no issue of {self.api.scope.name}"
            raise TrackerError(TrackerErrorKind.NOT_FOUND, what)
        return key

    def _is_ours(self, key: IssueKey) -> bool:
        return self._project in (None, key.project)

    def _is_there(self, item: GitLabIssue) -> bool:
        """Tell whether an issue is one of ours, and not one that lives on elsewhere."""
        path = path_of(item)
        is_below = path is None or path.casefold().startswith(f"{self._root.casefold()}/")
        by_number = self._root.isdecimal()
        return not is_moved(item) and (not self.api.scope.is_group or is_below or by_number)

    async def _readable(
        self, items: Mapping[IssueKey, GitLabIssue]
    ) -> tuple[dict[IssueKey, Issue], dict[str, UnreadableIssue]]:
        """Return the issues that can be given, and the others."""
        unreadable: dict[str, UnreadableIssue] = {}
        made: dict[IssueKey, tuple[GitLabIssue, Issue]] = {}
        for key, item in items.items():
            if is_moved(item):
                continue
            try:
                await self._labels.check(self.reader, item)
                known = self._made.get(key)
                is_same = known is not None and known[0] is item
                made[key] = known if known and is_same else (item, self.reader.issue(item))
            except TrackerError as exc:
                if exc.kind is not TrackerErrorKind.INVALID:
                    raise
                unreadable[key.id] = unreadable_issue(exc, key.id, self.reader.identifier_of(item))
        self._made = made
        return {key: issue for key, (_, issue) in made.items()}, unreadable

    # The steps of a re-read

    async def _read(
        self, ids: Sequence[IssueId]
    ) -> tuple[Mapping[IssueId, GitLabIssue], Mapping[IssueId, TrackerError]]:
        await self._learn_project()
        keys = [key for key in map(key_of_id, ids) if key is not None and self._is_ours(key)]
        found = await self.api.read(keys)
        return {key.id: item for key, item in found.items() if self._is_there(item)}, {}

    async def _whole(self, item: GitLabIssue, together: int = 1) -> Issue:
        await self._labels.check(self.reader, item)
        key = key_of(item)
        issue = self.reader.issue(item)  # before anything is asked about one that is none
        is_new = await self._links.refresh(key, item, together)
        version = item.get("updated_at"), item.get("user_notes_count")

        async def read() -> Iterable[Comment]:
            notes = await self.api.notes(key)
            try:
                return comments_of(notes, with_internal=self._settings.confidential)
            except ValueError as exc:
                what = f"GitLab issue {item.get('web_url')} cannot be read: {exc}"
                raise TrackerError(TrackerErrorKind.INVALID, what) from exc

        comments = await self._notes.get(key.id, version, read)
        seen = {} if is_new else self._open.seen()  # what just came is newer
        blocked_by = self._links.blocked_by(key, self.reader, seen)
        return replace(issue, comments=comments, blocked_by=blocked_by)

    async def _check_project(self) -> None:
        await self.api.check_scope()

    def _heard(self, item: GitLabIssue) -> None:
        self._open.list.put(item)

    def _gone(self, issue_id: IssueId) -> None:
        self._open.list.drop(issue_id)

    # The steps of a move

    async def _present(self, issue: Issue) -> GitLabIssue:
        await self._learn_project()
        key = self._key_of(issue)
        item = await self.api.one(key.project, key.iid)
        if item is None:
            await self.api.check_scope()
        if item is None or is_moved(item):
            gone = "was moved to another project" if item is not None else "is not there any more"
            what = f"GitLab issue {issue.identifier} {gone}"
            raise TrackerError(TrackerErrorKind.NOT_FOUND, what)
        return item

    def _state_of(self, item: GitLabIssue) -> str:
        return self.reader.issue(item).state

    def _is_done(self, item: GitLabIssue, state: str) -> bool:
        is_closed = item.get("state") == CLOSED
        return self.reader.labels.is_exactly(labels_of(item), state, closed=is_closed)

    async def _change(self, item: GitLabIssue, issue: Issue, state: str) -> None:
        states = self.reader.labels
        if not states.can_be(state):
            raise TrackerError(
                TrackerErrorKind.INVALID,
                f"cannot move {issue.identifier} to {state!r}, which no setting names",
            )
        key, labels, asked = key_of(item), labels_of(item), dict[str, Any]()
        label = states.label_of(state)
        if label is not None and not any(same_state(label, one) for one in labels):
            asked["add_labels"] = [await self._labels.spelled(key.project, label)]
        if others := states.others(labels, state):
            asked["remove_labels"] = list(others)
        if states.closes(state) is not (item.get("state") == CLOSED):
            asked["state_event"] = "close" if states.closes(state) else "reopen"
        await self.api.change(key, asked)

    def _not_made(self, what: str) -> TrackerError:
        hint = "the token's role may not be allowed to change labels"
        return TrackerError(TrackerErrorKind.PERMISSION, f"{what}; {hint}")
