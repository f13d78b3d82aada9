"""GitHub Issues as a tracker: one repository, whose labels are the states of its issues.

Rule 1: an answer about one issue is asked for at that moment; a list may know of what was deleted,
transferred or hidden until the next whole one.
Rule 2: in a move the new label is put on before the old ones are taken off, so that an issue is in
some state whenever the move is cut off.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import timedelta

import trio
from msgspec.structs import replace

from sortie.http.at_once import each
from sortie.http.budget import Use
from sortie.http.client import HttpClient, open_client
from sortie.http.comments import OnceOnly, fitted, harmless_mentions, is_marked, marked
from sortie.http.credentials import Credential, bearer
from sortie.http.github import PROVIDER
from sortie.http.github_app import AppCredential
from sortie.model import Comment, Issue, IssueId, TrackerError, TrackerErrorKind, state_key
from sortie.model.checks import Check
from sortie.telemetry.log.structlog_alone import structlog
from sortie.trackers import TrackerContext, TrackerStates
from sortie.trackers.github.api import GitHubApi
from sortie.trackers.github.batches import IssueBatches
from sortie.trackers.github.candidates import GitHubCandidates
from sortie.trackers.github.checks import GitHubChecks
from sortie.trackers.github.items import (
    GitHubItem,
    GitHubRepository,
    github_states,
    issue_of,
)
from sortie.trackers.github.people import GitHubPeople
from sortie.trackers.github.settings import GitHubSettings
from sortie.trackers.http.comments import comment_of
from sortie.trackers.http.label_states import LabelStates
from sortie.trackers.http.tracker import HttpTracker

COMMENT_LIMIT = 65_000
"""Characters of a comment; GitHub takes 65,536, and our mark needs some."""

BATCH_FROM = 4
"""Issues from which on they are read together; fewer cost nothing by REST while unchanged."""

_LONGEST_NUMBER = 9  # digits; GraphQL takes no larger integer

_CLOCK_MARGIN = timedelta(minutes=2)

_SHOWN = 50  # labels in a line of the log

log = structlog.get_logger()


@asynccontextmanager
async def opened(context: TrackerContext) -> AsyncIterator[GitHubTracker]:
    """Hold the client open. Raises TrackerError (INVALID) where the settings cannot be used."""
    settings, project = context.settings, context.project or ""
    assert isinstance(settings, GitHubSettings)
    owner, slash, name = project.partition("/")
    if not (owner and slash and name) or context.endpoint is None or not context.api_key:
        what = "tracker.project needs OWNER/REPOSITORY, and tracker.api_key a token"
        raise TrackerError(TrackerErrorKind.INVALID, what)
    priorities = {state_key(k): v for k, v in settings.priority_labels.items()}
    repository = GitHubRepository(owner=owner, name=name, priorities=priorities)
    credential: Credential = bearer(context.api_key.strip())
    if settings.app_id is not None:
        credential = AppCredential(
            settings.app_id, context.api_key, settings.installation_id, repository.full_name
        )
    provider = replace(PROVIDER, change_gap=settings.change_gap)
    async with open_client(provider, context.endpoint, credential, context.progress) as client:
        if isinstance(client.credential, AppCredential):
            client.credential.client = client
        yield GitHubTracker(client, repository, context, settings)


class GitHubTracker(HttpTracker[GitHubItem]):
    """The issues of one repository."""

    def __init__(
        self,
        client: HttpClient,
        repository: GitHubRepository,
        context: TrackerContext,
        settings: GitHubSettings,
    ) -> None:
        super().__init__(client)
        self._repository = repository
        self._settings = settings
        self._filter = context.query_filter
        self._api = GitHubApi(client, repository)
        self.people = GitHubPeople(client, repository)
        self._batches = IssueBatches(client, repository)
        self._states = github_states(context.states, settings.unlabeled_state)
        self._candidates = GitHubCandidates(
            client, self._api, repository, context.query_filter, settings.sweep_interval
        )
        self._labels: dict[str, str] = {}  # as the repository spells them, by ``state_key``
        self._comments = OnceOnly()
        self._had_some = False

    def configure(self, states: TrackerStates) -> None:
        """Tell states apart by these names from now on."""
        self._states = github_states(states, self._settings.unlabeled_state)

    async def fetch_candidates(self, states: Collection[str]) -> Sequence[Issue]:
        """Return the issues in these states, without comments; the same tuple where all is same."""
        wanted, names = frozenset(map(state_key, states)), self._states
        if not wanted:
            await trio.lowlevel.checkpoint()
            return ()
        issues = await self._candidates.fetch(
            lambda state: state_key(state) in wanted,
            names,
            self._listed,
            closed_too=names.has_closed(wanted),
        )
        self.client.list_ended()
        if self._had_some and not issues:
            await self._look_for_labels(names)
        self._had_some = bool(issues)
        return issues

    async def _look_for_labels(self, names: LabelStates) -> None:
        """Tell of states that have no label, as after one was renamed: its issues are in none."""
        labels = await self._api.labels()
        missing = [
            name
            for name in names.states.active
            if state_key(name) not in labels and name != names.unlabeled
        ]
        if missing:
            known = sorted(labels.values())[:_SHOWN]
            log.warning("tracker.states_missing", missing=missing, known=known)

    async def find(self, name: str) -> Issue | None:
        """Return the issue with that number, or that identifier, which is ``REPOSITORY-NUMBER``."""
        number = self._repository.number_in(name)
        item = None if number is None else await self._one(number)
        if item is None:
            await self._check_project()
            return None
        return await self._whole(item)

    async def complete_move(self, issue: Issue) -> None:
        """Take the labels of other states off an issue, and close or open it, as its state says."""
        if self._states.named(issue.state) is not None:
            await self.transition(issue, issue.state)

    async def comment(
        self, issue: Issue, body: str, key: str | None = None, *, again: bool = False
    ) -> None:
        """Add a comment, which mentions nobody; one whose answer was lost is looked for."""
        number = self._number_of(issue)
        text = marked(fitted(body, COMMENT_LIMIT, harmless_mentions, len), key)
        since = None if again else self.client.server_now() - _CLOCK_MARGIN

        async def is_there() -> bool:
            listed = await self._api.comments(number, since)
            return key is not None and any(is_marked(c.get("body") or "", key) for c in listed)

        await self._comments.make(
            key, lambda: self._api.post_comment(number, text), is_there, tried=again
        )

    def checks(self) -> Sequence[Check]:
        """Return what ``sortie doctor`` asks."""
        return GitHubChecks(self.client, self._api, self._repository, self._filter).checks(
            self._states
        )

    # Reading

    async def _read(
        self, ids: Sequence[IssueId]
    ) -> tuple[Mapping[IssueId, GitHubItem], Mapping[IssueId, TrackerError]]:
        """Read many issues together, and a few by REST, which costs nothing while unchanged."""
        numbers = [i for i in ids if self._repository.number_in(i) == i]
        small = [number for number in numbers if len(number) <= _LONGEST_NUMBER]
        together = await self._batches.read(small) if len(small) >= BATCH_FROM else None
        items: dict[IssueId, GitHubItem] = {}
        errors: dict[IssueId, TrackerError] = {}

        async def read(issue_id: IssueId) -> None:
            try:
                if together is not None and issue_id in together:
                    found = together[issue_id]
                    item = None if found is None else self._repository.item(found.data)
                    if item is not None and found is not None:
                        item = replace(item, comment_data=found.comments)
                else:
                    item = await self._one(issue_id)
            except TrackerError as exc:
                if exc.kind is not TrackerErrorKind.INVALID:
                    raise
                errors[issue_id] = exc
                return
            if item is not None:
                items[issue_id] = item

        await each(read, numbers)
        return items, errors

    async def _one(self, number: str) -> GitHubItem | None:
        data = await self._api.issue(number)
        return None if data is None else self._repository.item(data)

    async def _whole(self, item: GitHubItem, together: int = 1) -> Issue:
        del together
        states = self._states
        blockers = await self._candidates.blockers(item, states, Use.READ)
        comments: tuple[Comment, ...] = ()
        if item.comments:
            listed = item.comment_data
            if listed is None:
                listed = await self._api.comments(item.number)
            comments = tuple(map(comment_of, listed))
        return replace(issue_of(item, states, blockers), comments=comments)

    async def _check_project(self) -> None:
        await self._api.repository()

    def _heard(self, item: GitHubItem) -> None:
        self._candidates.put(replace(item, comment_data=None))

    def _gone(self, issue_id: IssueId) -> None:
        self._candidates.drop(issue_id)

    def _number_of(self, issue: Issue) -> str:
        """Return the number of an issue. Raises TrackerError (NOT_FOUND) for an id of no issue."""
        if self._repository.number_in(issue.id) != issue.id:
            raise self._not_there(issue.id)
        return issue.id

    def _not_there(self, number: str) -> TrackerError:
        return TrackerError(
            TrackerErrorKind.NOT_FOUND,
            f"{self._repository.identifier(number)} is not there, or the credential may not see it",
        )

    # Moving

    async def _present(self, issue: Issue) -> GitHubItem:
        item = await self._one(self._number_of(issue))
        if item is None:
            raise self._not_there(issue.id)
        return item

    def _state_of(self, item: GitHubItem) -> str:
        return item.state(self._states)

    def _is_done(self, item: GitHubItem, state: str) -> bool:
        return self._states.is_exactly(item.issue.labels, state, closed=item.closed)

    async def _change(self, item: GitHubItem, issue: Issue, state: str) -> GitHubItem:
        states, name = self._states, self._states.named(state)
        if name is None:
            raise TrackerError(
                TrackerErrorKind.INVALID,
                f"cannot move {issue.identifier} to {state!r}: the settings name no such state",
            )
        labels = item.issue.labels
        if state_key(name) not in map(state_key, labels):
            spelled = await self._spelled(name)
            labels = await self._api.add_label(item.number, spelled)
            if state_key(name) not in map(state_key, labels):
                raise TrackerError(
                    TrackerErrorKind.CLOSED,
                    f"cannot label {issue.identifier} as {spelled!r}: GitHub dropped it "
                    "without a word, which it does where the credential may not write",
                )
        others = states.others(labels, name)
        for other in others:
            await self._api.remove_label(item.number, other)
        closed = states.closes(name)
        if closed is not item.closed:
            await self._api.set_open(item.number, self._reason(name, closed=closed))
        return item.changed(tuple(lb for lb in labels if lb not in others), closed=closed)

    def _reason(self, name: str, *, closed: bool) -> str:
        if not closed:
            return "reopened"
        not_planned = map(state_key, self._settings.not_planned_states)
        return "not_planned" if state_key(name) in not_planned else "completed"

    async def _spelled(self, name: str) -> str:
        """Return a label as the repository spells it; one that it has not is made."""
        key = state_key(name)
        if key not in self._labels:
            self._labels = dict(await self._api.labels())
        if key not in self._labels:
            await self._api.create_label(name)
            self._labels[key] = name
        return self._labels[key]
