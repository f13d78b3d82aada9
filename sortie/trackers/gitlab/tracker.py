"""The GitLab tracker: issues of a project or of a group.

Rule 1: an issue that cannot be seen is missing only while the project or group can be seen.
Rule 2: an issue whose label was renamed has no state, rather than another one.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

import trio
from msgspec.structs import replace

from sortie.model import Issue, IssueId, TrackerError, TrackerErrorKind, state_key
from sortie.model.checks import Check
from sortie.trackers import (
    IssuesRead,
    Overview,
    RateBudget,
    Tracker,
    TrackerContext,
    TrackerStates,
    UnreadableIssue,
)
from sortie.trackers.gitlab.api import GitLabApi
from sortie.trackers.gitlab.checks import gitlab_checks
from sortie.trackers.gitlab.details import IssueDetails
from sortie.trackers.gitlab.issue_list import OpenIssues
from sortie.trackers.gitlab.issues import (
    IssueKey,
    IssueReader,
    Item,
    NoIssue,
    is_moved,
    key_of,
    key_of_id,
    path_of,
)
from sortie.trackers.gitlab.labels import CLOSED, StateLabels
from sortie.trackers.gitlab.moves import IssueMoves
from sortie.trackers.gitlab.names import places_of
from sortie.trackers.gitlab.notes import LIMIT, cut_to, harmless
from sortie.trackers.gitlab.project_labels import ProjectLabels
from sortie.trackers.gitlab.provider import Scope
from sortie.trackers.gitlab.query_filter import parsed
from sortie.trackers.gitlab.settings import GitLabSettings
from sortie.trackers.http.client import HttpClient
from sortie.trackers.http.comments import OnceOnly, is_marked, marked

_MARK_ROOM = 300  # characters that the mark of a comment may take


class GitLabTracker(Tracker):
    """Issues of one project or group."""

    def __init__(self, client: HttpClient, context: TrackerContext) -> None:
        settings = context.settings
        assert isinstance(settings, GitLabSettings)
        assert context.project is not None
        self._prefix = settings.label_prefix or ""
        self._project: int | None = None
        self._root = context.project.strip("/") if settings.scope == "group" else ""
        scope = Scope(name=context.project.strip("/"), is_group=settings.scope == "group")
        self.api = GitLabApi(client, scope)
        self._states = context.states
        self.reader = IssueReader(
            StateLabels(context.states, self._prefix),
            {state_key(label): priority for label, priority in settings.priorities.items()},
            self._root,
            with_confidential=settings.confidential,
        )
        self._labels = ProjectLabels(self.api)
        self._filter = parsed(context.query_filter)
        self._open = OpenIssues(self.api, self._filter)
        self._details = IssueDetails(
            self.api,
            self.reader,
            with_internal=settings.confidential,
            with_links=settings.blockers,
        )
        self._moves = IssueMoves(self.api, self.reader, self._labels)
        self._comments = OnceOnly()
        self._made: dict[IssueKey, tuple[Item, Issue]] = {}
        self._unreadable: dict[IssueKey, UnreadableIssue] = {}
        self._answer: tuple[Issue, ...] = ()

    def configure(self, states: TrackerStates) -> None:
        """Tell states apart by these names from now on."""
        self._states = states
        self.reader.labels = StateLabels(states, self._prefix)
        self._labels.forget()
        self._made.clear()

    def budgets(self) -> Sequence[RateBudget]:
        """Return what GitLab has told of its limits; a self-managed one may have none."""
        return self.api.budgets()

    def list_pause(self) -> float:
        """Return how far apart lists should be, so that requests last."""
        return self.api.list_pause()

    def checks(self) -> Sequence[Check]:
        """Return what ``sortie doctor`` asks GitLab."""
        return gitlab_checks(self.api, self.reader, self._filter)

    async def fetch_candidates(self, states: Collection[str]) -> Sequence[Issue]:
        """Return the issues in these states, without comments."""
        wanted = {state_key(state) for state in states}
        if not wanted:
            return ()
        await self._ready()
        if wanted & {CLOSED, *map(state_key, self._states.terminal)}:
            known: Mapping[IssueKey, Item] = await self.api.listed("all")
        else:
            known = await self._open.refresh(trio.current_time())
        self.api.list_ended()
        shown = {key: item for key, item in known.items() if not is_moved(item)}
        candidates = [
            (issue, shown[key])
            for key, issue in (await self._readable(shown)).items()
            if state_key(issue.state) in wanted
        ]
        terminal = set(self._states.terminal)
        seen = {**self._open.known(), **known}
        await self._details.look_ahead(candidates, seen, terminal)
        found = tuple(self._blocked(issue, item, seen) for issue, item in candidates)
        if len(found) != len(self._answer) or any(
            one is not other for one, other in zip(found, self._answer, strict=True)
        ):
            self._answer = found
        return self._answer

    async def fetch_by_ids(self, ids: Collection[IssueId]) -> IssuesRead:
        """Read these issues again, with their comments."""
        await self._ready()
        asked = (key_of_id(issue_id) for issue_id in dict.fromkeys(ids))
        keys = [key for key in asked if key is not None and self._is_ours(key)]
        items = await self.api.read(keys)
        there = {key: items[key] for key in keys if key in items and self._is_there(items[key])}
        if keys and not items:
            await self.api.check_scope()
        self._open.drop(key for key in keys if key not in there)
        issues: list[Issue] = []
        failed: dict[IssueId, TrackerError] = {}
        for key, item in there.items():
            self._open.put(item)
            try:
                issues.append(await self._whole(item, of=len(there)))
            except TrackerError as exc:
                if exc.kind is TrackerErrorKind.CLOSED or exc.retry_after is not None:
                    raise
                failed[key.id] = exc
        return IssuesRead(issues=tuple(issues), failed=failed)

    async def find(self, name: str) -> Issue | None:
        """Return the issue of that identifier, id, or reference such as ``group/project#7``."""
        await self._ready()
        for project, iid in places_of(name, project=self._project, root=self._root):
            item = await self.api.one(project, iid)
            if item is not None and self._is_there(item):
                return await self._whole(item)
        return None

    async def transition(self, issue: Issue, state: str) -> Issue:
        """Change the labels of an issue, and close or reopen it, in one request."""
        await self._ready()
        if not self.reader.labels.knows(state):
            raise TrackerError(
                TrackerErrorKind.INVALID,
                f"cannot move {issue.identifier} to {state!r}, which no setting names",
            )
        moved = await self._moves.move(self._key_of(issue), issue, state)
        self._open.put(moved)
        return await self._whole(moved)

    async def comment(
        self, issue: Issue, body: str, key: str | None = None, *, again: bool = False
    ) -> None:
        """Write a note in which no line is an order to GitLab, and nobody is called."""
        await self._ready()
        where = self._key_of(issue)
        text = marked(cut_to(harmless(body), LIMIT - _MARK_ROOM), key)

        async def is_there() -> bool:
            notes = await self.api.notes(where, newest_first=True)
            return any(is_marked(str(note.get("body")), key or "") for note in notes)

        await self._comments.make(
            key, lambda: self.api.add_note(where, text), is_there, tried=again
        )

    def overview(self) -> Overview:
        """Return what was seen of open issues, and of what changed since."""
        return Overview(
            issues=tuple(issue for _, issue in self._made.values()),
            unreadable=tuple(self._unreadable.values()),
        )

    async def _ready(self) -> None:
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

    def _is_there(self, item: Item) -> bool:
        """Tell whether an issue is one of ours, and not one that lives on elsewhere."""
        path = path_of(item)
        is_below = path is None or path.casefold().startswith(f"{self._root.casefold()}/")
        by_number = self._root.isdecimal()
        return not is_moved(item) and (not self.api.scope.is_group or is_below or by_number)

    async def _readable(self, items: Mapping[IssueKey, Item]) -> dict[IssueKey, Issue]:
        """Return the issues that can be given; keep the others for ``overview``."""
        self._unreadable = {}
        made: dict[IssueKey, tuple[Item, Issue]] = {}
        for key, item in items.items():
            known = self._made.get(key)
            try:
                await self._labels.check(self.reader, item)
                is_same = known is not None and (known[0] is item or known[0] == item)
                made[key] = known if known and is_same else (item, self.reader.issue(item))
            except TrackerError as exc:
                if exc.kind is not TrackerErrorKind.INVALID:
                    raise
                self._unreadable[key] = UnreadableIssue(
                    message=str(exc), names=frozenset(self._names_of(item))
                )
        self._made = made
        return {key: issue for key, (_, issue) in made.items()}

    def _names_of(self, item: Item) -> Iterable[str]:
        try:
            return key_of(item).id, self.reader.identifier_of(item)
        except NoIssue:
            return ()

    def _blocked(self, issue: Issue, item: Item, known: Mapping[IssueKey, Item]) -> Issue:
        """Return an issue with its blockers; the same object while they are the same."""
        key = key_of(item)
        blocked_by = self._details.blocked_by(key, known)
        if issue.blocked_by != blocked_by:
            issue = self.reader.issue(item, blocked_by=blocked_by)
            self._made[key] = item, issue
        return issue

    async def _whole(self, item: Item, *, of: int = 1) -> Issue:
        await self._labels.check(self.reader, item)
        return await self._details.whole(item, self._open.known(), of=of)
