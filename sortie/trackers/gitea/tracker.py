"""A tracker that is the issues of a repository on Gitea or Forgejo."""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import datetime
from typing import Any

import trio
from msgspec.structs import replace

from sortie.http.at_once import each
from sortie.http.budget import Use
from sortie.http.checks import budget_check, clock_check
from sortie.http.client import HttpClient, open_client
from sortie.http.comments import OnceOnly, fitted, harmless_mentions, is_marked, marked
from sortie.http.credentials import header
from sortie.http.gitea import PROVIDER, api_of
from sortie.http.json_values import mapping_of, word_of
from sortie.model import (
    Blocker,
    Comment,
    Issue,
    IssueId,
    TrackerError,
    TrackerErrorKind,
    same_state,
    state_key,
)
from sortie.model.checks import Check, CheckResult, passed
from sortie.trackers import TrackerContext, TrackerStates, UnreadableIssue
from sortie.trackers.gitea.api import MISSING, GiteaApi
from sortie.trackers.gitea.items import GiteaItem, GiteaReader, gitea_states
from sortie.trackers.gitea.people import GiteaPeople
from sortie.trackers.gitea.settings import GiteaSettings
from sortie.trackers.http.changes import ChangingList
from sortie.trackers.http.comments import comment_of
from sortie.trackers.http.listed import unreadable_issue
from sortie.trackers.http.tracker import CommentMemory, HttpTracker

COMMENT_LIMIT = 60_000
"""Characters of a comment that are sent."""

_COLOUR = "#ededed"


@asynccontextmanager
async def opened(context: TrackerContext) -> AsyncIterator[GiteaTracker]:
    """Hold the client open. Raises TrackerError (INVALID) where the settings cannot be used."""
    if context.endpoint is None or context.api_key is None or "/" not in (context.project or ""):
        what = "tracker.endpoint, tracker.api_key and tracker.project, OWNER/REPOSITORY, are needed"
        raise TrackerError(TrackerErrorKind.INVALID, what)
    credential = header("Authorization", f"token {context.api_key.strip()}")
    endpoint = api_of(context.endpoint)
    async with open_client(PROVIDER, endpoint, credential, context.progress) as client:
        yield GiteaTracker(client, context)


class GiteaTracker(HttpTracker[GiteaItem]):
    """The issues of one repository."""

    def __init__(self, client: HttpClient, context: TrackerContext) -> None:
        super().__init__(client)
        settings = context.settings
        assert isinstance(settings, GiteaSettings)
        self._settings = settings
        self._name = context.project or ""
        priorities = {state_key(k): v for k, v in settings.priority_labels.items()}
        self._reader = GiteaReader(name=self._name, priorities=priorities)
        self._api = GiteaApi(client, self._reader)
        self.people = GiteaPeople(client, self._api, self._name)
        self._states = gitea_states(context.states, settings.unlabeled_state)
        self._known: ChangingList[Mapping[str, Any]] = ChangingList(
            lambda data: IssueId(str(data.get("number"))), _changed_at
        )
        self._comments = CommentMemory()
        self._once = OnceOnly()

    def configure(self, states: TrackerStates) -> None:
        """Tell states apart by these names from now on."""
        self._states = gitea_states(states, self._settings.unlabeled_state)

    def checks(self) -> Sequence[Check]:
        """Return what ``sortie doctor`` asks: the repository, clock and limits."""

        async def reach() -> CheckResult:
            private = mapping_of(await self._check_project()).get("private")
            public = None if not isinstance(private, bool) else not private
            return passed(f"{self.client.provider} shows {self._name}", public=public)

        return (Check(name="reach", ask=reach), clock_check(self.client), budget_check(self.client))

    async def fetch_candidates(self, states: Collection[str]) -> Sequence[Issue]:
        """Return the issues in these states, without comments."""
        wanted = set(map(state_key, states))
        if not wanted:
            await trio.lowlevel.checkpoint()
            return ()
        scope = "all" if self._states.has_closed(wanted) else "open"
        await self._known.refresh(
            scope, trio.current_time(), lambda: self._listed_all(scope), self._since
        )
        self.client.list_ended()
        found: list[tuple[GiteaItem, Issue]] = []
        unreadable: dict[str, UnreadableIssue] = {}
        for issue_id, data in self._known.items.items():
            try:
                item = self._reader.item(data)
            except TrackerError as exc:
                name = self._reader.identifier(issue_id)
                unreadable[issue_id] = unreadable_issue(exc, issue_id, name)
                continue
            if item is not None:
                found.append((item, self._reader.issue(item, self._states)))
        blocked: dict[IssueId, Issue] = {}
        candidates = [(item, issue) for item, issue in found if state_key(issue.state) in wanted]

        async def look(pair: tuple[GiteaItem, Issue]) -> None:
            item, issue = pair
            blocked[issue.id] = replace(issue, blocked_by=await self._blockers(item, Use.LIST))

        await each(look, candidates)
        issues = [blocked[issue.id] for _, issue in candidates]
        return self._listed.take(issues, unreadable, lambda: [issue for _, issue in found])

    async def find(self, name: str) -> Issue | None:
        """Return the issue of that identifier, or number."""
        number = self._reader.number_in(name)
        if number is None:
            await trio.lowlevel.checkpoint()
            return None
        item = await self._api.issue(IssueId(number))
        return None if item is None else await self._whole(item)

    async def comment(
        self, issue: Issue, body: str, key: str | None = None, *, again: bool = False
    ) -> None:
        """Write a comment in which nobody is called."""
        path, what = f"{self._api.path(issue.id)}/comments", f"cannot comment on {issue.identifier}"
        text = marked(fitted(body, COMMENT_LIMIT, harmless_mentions, len), key)

        async def post() -> None:
            await self._api.write("POST", path, what, {"body": text})

        async def is_there() -> bool:
            found = await self._api.pages(path, what)
            return any(is_marked(str(one.get("body")), key or "") for one in found)

        await self._once.make(key, post, is_there, tried=again)

    async def _listed_all(self, scope: str) -> Iterable[Mapping[str, Any]]:
        params = [("type", "issues"), ("state", scope)]
        what = f"cannot list the issues of {self._name}"
        found = await self._api.pages("/issues", what, params, use=Use.LIST)
        if not found:
            await self._check_project()  # what may not be seen looks empty, too
        return found

    async def _since(self, cursor: datetime) -> Iterable[Mapping[str, Any]]:
        since = cursor.isoformat(timespec="seconds").replace("+00:00", "Z")
        params = [("type", "issues"), ("state", "all"), ("since", since)]
        what = f"cannot list the issues of {self._name}"
        return await self._api.pages("/issues", what, params, use=Use.LIST)

    async def _blockers(self, item: GiteaItem, use: Use) -> tuple[Blocker, ...]:
        if not self._settings.blockers:
            return ()
        found = await self._api.dependencies(item, use)
        listed = self._known.items if use is Use.LIST else {}
        return tuple(
            self._reader.blocker(_newest(data, listed, self._name), self._states) for data in found
        )

    # The steps of a re-read

    async def _read(
        self, ids: Sequence[IssueId]
    ) -> tuple[Mapping[IssueId, GiteaItem], Mapping[IssueId, TrackerError]]:
        items: dict[IssueId, GiteaItem] = {}
        errors: dict[IssueId, TrackerError] = {}

        async def read(issue_id: IssueId) -> None:
            if self._reader.number_in(issue_id) is None:
                return
            try:
                item = await self._api.issue(issue_id)
            except TrackerError as exc:
                if exc.kind is not TrackerErrorKind.INVALID:
                    raise
                errors[issue_id] = exc
                return
            if item is not None:
                items[issue_id] = item

        await each(read, ids)
        return items, errors

    async def _whole(self, item: GiteaItem, together: int = 1) -> Issue:
        del together
        path = f"{self._api.path(item.issue.id)}/comments"
        what = f"cannot read the comments of {item.issue.identifier}"

        async def read() -> Iterable[Comment]:
            return map(comment_of, await self._api.pages(path, what))

        version = item.updated_at, item.comments
        comments = await self._comments.get(item.issue.id, version, read)
        blocked_by = await self._blockers(item, Use.READ)
        return replace(self._reader.issue(item, self._states, blocked_by), comments=comments)

    async def _check_project(self) -> Any:
        answer = await self._api.ask("", f"cannot see the repository {self._name}", wanted=MISSING)
        if not answer.ok:
            what = f"cannot see the repository {self._name}: it is not there, or hidden"
            advice = "check tracker.project and what the token may see"
            raise TrackerError(TrackerErrorKind.CLOSED, f"{what}; {advice}")
        return answer.json()

    def _heard(self, item: GiteaItem) -> None:
        self._known.put(item.told)

    def _gone(self, issue_id: IssueId) -> None:
        self._known.drop(issue_id)

    # The steps of a move

    async def _present(self, issue: Issue) -> GiteaItem:
        item = await self._api.issue(issue.id)
        if item is None:
            await self._check_project()
            what = f"issue {issue.identifier} is not there any more"
            raise TrackerError(TrackerErrorKind.NOT_FOUND, what)
        return item

    def _state_of(self, item: GiteaItem) -> str:
        return item.state(self._states)

    def _is_done(self, item: GiteaItem, state: str) -> bool:
        return self._states.is_exactly(item.issue.labels, state, closed=item.closed)

    async def _change(self, item: GiteaItem, issue: Issue, state: str) -> None:
        if not self._states.can_be(state):
            what = f"cannot move {issue.identifier} to {state!r}, which no setting names"
            raise TrackerError(TrackerErrorKind.INVALID, what)
        path, what = self._api.path(issue.id), f"cannot move {issue.identifier} to {state}"
        label = self._states.label_of(state)
        if label is not None and not any(same_state(label, one) for one in item.label_ids):
            number = await self._label_id(label)
            await self._api.write("POST", f"{path}/labels", what, {"labels": [number]})
        if self._states.closes(state) is not item.closed:
            wanted = "closed" if self._states.closes(state) else "open"
            await self._api.write("PATCH", path, what, {"state": wanted})
        for other in self._states.others(item.issue.labels, state):
            number = item.label_ids[other]
            await self._api.write("DELETE", f"{path}/labels/{number}", what, wanted=MISSING)

    async def _label_id(self, name: str) -> int:
        """Return the id of a label, which is made where it is not there."""
        known = await self._api.pages("/labels", f"cannot read the labels of {self._name}")
        for label in known:
            if same_state(str(label.get("name")), name):
                return int(label["id"])
        what = f"cannot make the label {name!r}"
        made = await self._api.write("POST", "/labels", what, {"name": name, "color": _COLOUR})
        return int(made["id"])


def _changed_at(data: Mapping[str, Any]) -> datetime | None:
    try:
        return datetime.fromisoformat(str(data.get("updated_at")))
    except ValueError:
        return None  # that issue is told as one that cannot be read


def _newest(
    data: Mapping[str, Any], listed: Mapping[str, Mapping[str, Any]], name: str
) -> Mapping[str, Any]:
    """Return an issue as the list has it, which is newer, where it is of this repository."""
    home = word_of(mapping_of(data.get("repository")).get("full_name")) or name
    known = listed.get(str(data.get("number")))
    return data if known is None or home.casefold() != name.casefold() else known
