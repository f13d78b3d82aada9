"""GitHub Issues as a tracker: one repository, whose labels are the states of its issues."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from datetime import timedelta
from typing import Any

import trio
from msgspec import Struct
from msgspec.structs import replace

from sortie.model import Comment, Issue, IssueId, TrackerError, TrackerErrorKind, state_key
from sortie.model.checks import Check
from sortie.telemetry.log.structlog_alone import structlog
from sortie.trackers import IssuesRead, Overview, RateBudget, Tracker, TrackerStates
from sortie.trackers.github.api import GitHubApi
from sortie.trackers.github.batches import Found, IssueBatches, is_whole
from sortie.trackers.github.candidates import Candidates, not_there
from sortie.trackers.github.checks import GitHubChecks
from sortie.trackers.github.items import Item, Repository, comment_of, issue_of
from sortie.trackers.github.label_states import LabelStates
from sortie.trackers.github.move import Mover
from sortie.trackers.http.budget import Use
from sortie.trackers.http.client import HttpClient
from sortie.trackers.http.comments import OnceOnly, harmless_within, is_marked, marked

COMMENT_LIMIT = 65_000
"""Characters of a comment; GitHub takes 65,536, and our mark needs some."""

_READS_AT_ONCE = 8

BATCH_FROM = 4
"""Issues from which on they are read together; fewer cost nothing by REST while unchanged."""

_LONGEST_NUMBER = 9  # digits; GraphQL takes no larger integer

_CLOCK_MARGIN = timedelta(minutes=2)

_SHOWN = 50  # labels in a line of the log

log = structlog.get_logger()


class GitHubOptions(Struct, frozen=True, kw_only=True):
    """What the block ``github`` says, as the tracker needs it."""

    unlabeled: str | None
    not_planned: tuple[str, ...]
    sweep: float


class GitHubTracker(Tracker):
    """The issues of one repository.

    Rule 1: an answer about one issue is asked for at that moment; a list may know of what was
    deleted, transferred or hidden for as long as a sweep is apart from the next.
    Rule 2: a change is compared with what was read right before it, and read back.
    """

    def __init__(
        self,
        client: HttpClient,
        repository: Repository,
        states: TrackerStates,
        options: GitHubOptions,
        query_filter: str | None,
    ) -> None:
        self._client = client
        self._repository = repository
        self._api = GitHubApi(client, repository)
        self._batches = IssueBatches(client, repository)
        self._options = options
        self._states = LabelStates(states=states, unlabeled=options.unlabeled)
        self._candidates = Candidates(self._api, repository, query_filter, options.sweep)
        self._mover = Mover(self._api, repository, options.not_planned)
        self._comments = OnceOnly()
        self._had_some = False
        self._checks = GitHubChecks(client, self._api, repository, query_filter)

    def configure(self, states: TrackerStates) -> None:
        """Tell states apart by these names from now on."""
        self._states = LabelStates(states=states, unlabeled=self._options.unlabeled)

    async def fetch_candidates(self, states: Collection[str]) -> Sequence[Issue]:
        """Return the issues in these states, without comments; the same tuple where all is same."""
        wanted, names = frozenset(map(state_key, states)), self._states
        if not wanted:
            await trio.lowlevel.checkpoint()
            return ()
        issues = await self._candidates.fetch(
            lambda state: state_key(state) in wanted, names, closed_too=names.has_closed(wanted)
        )
        self._client.list_ended()
        if self._had_some and not issues:
            await self._look_for_labels(names)
        self._had_some = bool(issues)
        return issues

    async def _look_for_labels(self, names: LabelStates) -> None:
        """Tell of states that have no label, as after one was renamed: its issues are in none."""
        labels = await self._api.labels()
        missing = [name for name in names.states.active if state_key(name) not in labels]
        missing = [name for name in missing if name != names.unlabeled]
        if missing:
            known = sorted(labels.values())[:_SHOWN]
            log.warning("tracker.states_missing", missing=missing, known=known)

    async def fetch_by_ids(self, ids: Collection[IssueId]) -> IssuesRead:
        """Read these issues: many together, a few by REST, which costs nothing while unchanged."""
        wanted = list(dict.fromkeys(ids))
        issues: dict[IssueId, Issue] = {}
        failed: dict[IssueId, TrackerError] = {}
        batch = await self._batch(wanted)

        async def read(issue_id: IssueId) -> None:
            if issue_id in batch:
                found = await self._told(issue_id, batch[issue_id])
            else:
                found = await self._found(issue_id)
            if isinstance(found, TrackerError):
                failed[issue_id] = found
            elif found is not None:
                issues[issue_id] = found

        await _each(read, wanted)
        if wanted and not issues and not failed:
            await self._api.repository()  # are they gone, or is all of it hidden from us?
        return IssuesRead(issues=tuple(issues[i] for i in wanted if i in issues), failed=failed)

    async def _batch(self, ids: Sequence[IssueId]) -> Mapping[str, Found | None]:
        """Return what can be read of many issues together; nothing where there are few."""
        numbers = [issue_id for issue_id in ids if self._repository.number_in(issue_id) == issue_id]
        numbers = [number for number in numbers if len(number) <= _LONGEST_NUMBER]
        if len(numbers) < BATCH_FROM:
            return {}
        found = await self._batches.read(numbers) or {}
        return {n: one for n, one in found.items() if one is None or is_whole(one)}

    async def find(self, name: str) -> Issue | None:
        """Return the issue with that number, or that identifier, which is ``REPOSITORY-NUMBER``."""
        number = self._repository.number_in(name)
        found = None if number is None else await self._found(IssueId(number))
        if isinstance(found, TrackerError):
            raise found
        if found is None:
            await self._api.repository()
        return found

    async def transition(self, issue: Issue, state: str) -> Issue:
        """Move an issue by its labels, and close or reopen it."""
        if self._repository.number_in(issue.id) != issue.id:
            raise not_there(self._repository, issue.id)
        item = await self._mover.move(issue, state, self._states)
        self._candidates.put(item)
        return await self._whole(item)

    async def complete_move(self, issue: Issue) -> None:
        """Take the labels of other states off an issue, and close or open it, as its state says."""
        if self._states.named(issue.state) is not None:
            await self.transition(issue, issue.state)

    async def comment(
        self, issue: Issue, body: str, key: str | None = None, *, again: bool = False
    ) -> None:
        """Add a comment, which mentions nobody; one whose answer was lost is looked for."""
        number = issue.id
        if self._repository.number_in(number) != number:
            raise not_there(self._repository, number)
        text = marked(harmless_within(body, COMMENT_LIMIT), key)
        since = None if again else self._client.server_now() - _CLOCK_MARGIN

        async def is_there() -> bool:
            listed = await self._api.comments(number, since)
            return key is not None and any(is_marked(c.get("body") or "", key) for c in listed)

        await self._comments.make(
            key, lambda: self._api.post_comment(number, text), is_there, tried=again
        )

    def overview(self) -> Overview:
        """Return the issues of the last list that are in a named state, and unreadable ones."""
        return self._candidates.overview(self._states)

    def budgets(self) -> Sequence[RateBudget]:
        """Return what GitHub said of the limits ``core``, ``graphql`` and ``search``."""
        return self._client.budgets()

    def list_pause(self) -> float:
        """Return what the client makes of these."""
        return self._client.list_pause()

    def checks(self) -> Sequence[Check]:
        """Return what ``sortie doctor`` asks."""
        return self._checks.checks(self._states)

    async def _found(self, issue_id: IssueId) -> Issue | TrackerError | None:
        """Read an issue with all that belongs to it; None where there is none."""
        if self._repository.number_in(issue_id) != issue_id:
            await trio.lowlevel.checkpoint()
            return None
        data = await self._api.issue(issue_id)
        return await self._told(issue_id, None if data is None else Found(data=data, comments=None))

    async def _told(self, issue_id: IssueId, found: Found | None) -> Issue | TrackerError | None:
        """Take over what was read of an issue, and return it with all that belongs to it."""
        try:
            item = None if found is None else self._repository.item(found.data)
            if found is None or item is None:
                self._candidates.drop(issue_id)
                return None
            self._candidates.put(item)
            return await self._whole(item, found.comments)
        except TrackerError as exc:
            if exc.kind is TrackerErrorKind.INVALID:
                return exc
            raise

    async def _whole(self, item: Item, told: Sequence[Mapping[str, Any]] | None = None) -> Issue:
        """Return an issue with its blockers and comments; these are asked for if not ``told``."""
        states = self._states
        blockers = await self._candidates.blockers(item, states, Use.READ)
        comments: tuple[Comment, ...] = ()
        if item.comments:
            listed = await self._api.comments(item.number) if told is None else told
            comments = tuple(map(comment_of, listed))
        return replace(issue_of(item, states, blockers), comments=comments)


async def _each(work: Callable[[IssueId], Awaitable[None]], ids: Sequence[IssueId]) -> None:
    """Do it for each of these, some at a time. Raises the first TrackerError, alone."""
    failed: list[TrackerError] = []
    limit = trio.CapacityLimiter(_READS_AT_ONCE)

    async def one(issue_id: IssueId) -> None:
        async with limit:
            try:
                await work(issue_id)
            except TrackerError as exc:
                failed.append(exc)
                nursery.cancel_scope.cancel()

    async with trio.open_nursery() as nursery:
        for issue_id in ids:
            nursery.start_soon(one, issue_id)
    if failed:
        raise failed[0]
