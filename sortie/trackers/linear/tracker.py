"""The Linear tracker: the issues of one team.

Rule 1: only issues of the team that are neither archived nor in the trash are there.
Rule 2: a state is found by its name among those of the issue's own team, and asked for by its id.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from contextlib import asynccontextmanager
from uuid import NAMESPACE_URL, UUID, uuid4, uuid5

import trio

from sortie.http.budget import Use
from sortie.http.client import open_client
from sortie.model import (
    Issue,
    IssueId,
    LostAnswer,
    TrackerError,
    TrackerErrorKind,
    same_state,
    state_key,
)
from sortie.model.checks import Check
from sortie.telemetry.log.structlog_alone import structlog
from sortie.trackers import TrackerContext, TrackerStates
from sortie.trackers.http.added_states import AddedStates
from sortie.trackers.http.listed import unreadable_issue
from sortie.trackers.http.tracker import HttpTracker
from sortie.trackers.linear import queries
from sortie.trackers.linear.api import PROVIDER, LinearApi, credential_of, nodes_of
from sortie.trackers.linear.candidates import LinearCandidates, WantedIssues
from sortie.trackers.linear.checks import LinearChecks
from sortie.trackers.linear.issues import TERMINAL_TYPES, Node, comments_of, issue_of, state_of
from sortie.trackers.linear.labels import StateLabels
from sortie.trackers.linear.people import LinearPeople
from sortie.trackers.linear.rereads import LinearReader
from sortie.trackers.linear.settings_check import filter_of
from sortie.trackers.linear.team import Team, find_team, state_in

TEAM_LIFE = 600.0
"""Seconds after which the team's states are asked for again."""

_IDENTIFIER = re.compile(r"([A-Za-z][A-Za-z0-9_]*)-([0-9]{1,9})")

log = structlog.get_logger()


@asynccontextmanager
async def opened(
    context: TrackerContext, auth: str, page_size: int
) -> AsyncIterator[LinearTracker]:
    """Hold the HTTP client open; ``auth`` says what the API key is."""
    assert context.endpoint is not None
    assert context.api_key is not None
    credential = credential_of(context.api_key, auth)
    async with open_client(PROVIDER, context.endpoint, credential, context.progress) as client:
        yield LinearTracker(LinearApi(client, page_size), context)


class LinearTracker(HttpTracker[Node]):
    """Issues of one team."""

    reads_back = False

    def __init__(self, api: LinearApi, context: TrackerContext) -> None:
        super().__init__(api.client)
        assert context.project is not None
        self._api = api
        self._key = context.project
        self.people = LinearPeople(api)
        self._added = AddedStates(context.states)
        self._labels = StateLabels(api)
        self._filter = filter_of(context.query_filter)
        self._team: tuple[Team, float] | None = None
        self._reader = LinearReader(api, self._key)
        self._candidates = LinearCandidates(api, self._reader.complete)
        self._logged_missing: list[str] = []

    def configure(self, states: TrackerStates) -> None:
        """Tell states by these from now on, and look for them in the team."""
        self._added = AddedStates(states)
        self._candidates.list.forget()

    def checks(self) -> Sequence[Check]:
        """Ask who the key belongs to, for the team and its states, and for what is left."""
        return LinearChecks(self._api, self._key, self._added, self._filter).checks()

    async def fetch_candidates(self, states: Collection[str]) -> Sequence[Issue]:
        """Return the team's issues in these states, without comments."""
        if not states:
            await trio.lowlevel.checkpoint()
            return ()
        before = self._candidates.list.items
        issues = await self._refreshed(states)
        if before and not issues:
            # A state that was renamed looks like one without issues.
            self._team = None
            issues = await self._refreshed(states)
        return issues

    async def _refreshed(self, states: Collection[str]) -> Sequence[Issue]:
        team = await self._team_with(states)
        wanted = WantedIssues(
            team_id=team.id,
            state_ids=team.ids_of(self._added.own(states)),
            added=self._added,
            labels=tuple(self._added.added(states)),
            over_ids=team.over_ids(self._added),
            query_filter=self._filter,
        )
        items = (await self._candidates.refresh(wanted, trio.current_time())).values()
        self.client.list_ended()
        readable = [item.issue for item in items if item.issue is not None]
        unreadable = {
            item.id: unreadable_issue(item.error, item.id, item.identifier)
            for item in items
            if item.error is not None
        }
        names = set(map(state_key, states))
        found = [issue for issue in readable if state_key(issue.state) in names]
        return self._listed.take(found, unreadable, lambda: readable)

    async def find(self, name: str) -> Issue | None:
        """Return the issue of that identifier, such as ENG-12, or else of that id."""
        node = None
        if (parts := _IDENTIFIER.fullmatch(name)) and same_state(parts[1], self._key):
            number = {"number": {"eq": int(parts[2])}}
            team = {"team": {"key": {"eqIgnoreCase": self._key}}}
            node = await self._reader.one({"and": [team, number]}, name)
        if node is None:
            try:
                node = await self._reader.one({"id": {"in": [name]}}, name)
            except TrackerError as exc:
                if exc.kind not in (TrackerErrorKind.INVALID, TrackerErrorKind.NOT_FOUND):
                    raise
        return None if node is None else await self._whole(node)

    async def complete_move(self, issue: Issue) -> None:
        """Take the labels of other states off an issue."""
        await trio.lowlevel.checkpoint()
        if self._added.others(issue.labels, issue.state):
            await self.transition(issue, issue.state)

    async def comment(
        self, issue: Issue, body: str, key: str | None = None, *, again: bool = False
    ) -> None:
        """Add a comment under an id made from its key, so that no repeat makes a second one."""
        del again  # Linear itself knows the id
        comment_id = _comment_id(key)
        what = f"cannot comment on {issue.identifier}"
        try:
            data = await self._api.ask(
                queries.COMMENT, what, Use.WRITE, id=comment_id, issue=str(issue.id), body=body
            )
            if data["commentCreate"]["success"]:
                return
            raise LostAnswer(TrackerErrorKind.UNAVAILABLE, f"{what}: Linear says no success")
        except TrackerError as exc:
            refused = not isinstance(exc, LostAnswer) and exc.kind is not TrackerErrorKind.INVALID
            if refused or exc.retry_after is not None:
                raise
            # Lost, or its id is there already: it was made by an earlier try.
            data = await self._api.ask(queries.COMMENT_IS_THERE, what, id=comment_id)
            if not nodes_of(data["comments"]):
                raise

    # The steps of a re-read

    async def _read(
        self, ids: Sequence[IssueId]
    ) -> tuple[Mapping[IssueId, Node], Mapping[IssueId, TrackerError]]:
        nodes = await self._reader.of_ids(ids)
        if not nodes:
            return {}, {}
        ours = {issue_id: node for issue_id, node in nodes.items() if self._reader.is_ours(node)}
        for issue_id in nodes.keys() - ours.keys():
            self._gone(issue_id)
        return ours, {}

    async def _whole(self, item: Node, together: int = 1) -> Issue:
        del together
        await trio.lowlevel.checkpoint()
        try:
            comments = comments_of(nodes_of(item["comments"]))
        except (KeyError, TypeError, ValueError) as exc:
            what = f"a comment on Linear issue {item['identifier']} makes no sense: {exc!r}"
            raise TrackerError(TrackerErrorKind.INVALID, what) from exc
        return issue_of(item, self._added, comments)

    async def _check_project(self) -> None:
        await self._found_team()

    def _heard(self, item: Node) -> None:
        self._candidates.learn(item, self._added)

    def _gone(self, issue_id: IssueId) -> None:
        self._candidates.list.drop(issue_id)

    # The steps of a move

    async def _present(self, issue: Issue) -> Node:
        return await self._reader.with_states(issue)

    def _state_of(self, item: Node) -> str:
        return state_of(item, self._added)

    def _is_done(self, item: Node, state: str) -> bool:
        labels = (str(label["name"]) for label in nodes_of(item["labels"]))
        return super()._is_done(item, state) and not self._added.others(labels, state)

    async def _change(self, item: Node, issue: Issue, state: str) -> Node:
        """Change state and labels by one request."""
        what = f"cannot move {issue.identifier} to {state}"
        changes = await self._changes(item, issue, state)
        try:
            data = await self._api.ask(queries.MOVE, what, Use.WRITE, id=str(issue.id), **changes)
        except TrackerError as exc:
            if exc.kind in (TrackerErrorKind.INVALID, TrackerErrorKind.NOT_FOUND):
                self._labels.forget()  # one of them may have been deleted
            raise
        payload = data["issueUpdate"]
        if not payload["success"] or payload["issue"] is None:
            raise LostAnswer(TrackerErrorKind.UNAVAILABLE, f"{what}: Linear says no success")
        return {**item, **await self._reader.complete(payload["issue"])}

    async def _changes(self, item: Node, issue: Issue, state: str) -> dict[str, object]:
        """Return what a move changes; an issue that is over is reopened for a label."""
        added, own, changes = self._added, item["state"], dict[str, object]()
        labels, target = nodes_of(item["labels"]), state
        if added.is_added(state):
            is_over = added.is_over(str(own["name"]), ended=own["type"] in TERMINAL_TYPES)
            target = added.reopened(issue, state) if is_over else str(own["name"])
            if not added.has((str(label["name"]) for label in labels), state):
                (name,) = added.added([state])
                changes["add"] = [await self._labels.id_of(str(item["team"]["id"]), name)]
        if not same_state(str(own["name"]), target):
            changes["state"] = state_in(item, issue.identifier, target).id
        others = set(added.others((str(label["name"]) for label in labels), state))
        if others:
            changes["remove"] = [str(lb["id"]) for lb in labels if str(lb["name"]) in others]
        return changes

    # Teams and states

    async def _found_team(self) -> Team:
        team = await find_team(self._api, self._key)
        self._team = team, trio.current_time()
        return team

    async def _team_with(self, states: Collection[str]) -> Team:
        """Return the team, asked for anew where a state is not known. Raises TrackerError."""
        team, own = None, self._added.own(states)
        missing = own
        if self._team is not None and trio.current_time() - self._team[1] < TEAM_LIFE:
            team = self._team[0]
            missing = team.missing(own)
        if (
            team is None
            or 0 < len(missing) == len(own)
            or missing not in ([], self._logged_missing)
            or self._added.in_both(team.state_names)
        ):
            team = await self._found_team()
            missing = team.missing(own)
        team.check_labels(self._added)
        if 0 < len(missing) == len(own):
            raise TrackerError(
                TrackerErrorKind.INVALID,
                f"team {team.key} of Linear has none of the states {', '.join(missing)};"
                f" it has {team.states_text}",
            )
        if missing and missing != self._logged_missing:
            log.warning(
                "tracker.states_missing", team=team.key, missing=missing, known=team.states_text
            )
        self._logged_missing = missing
        return team


def _comment_id(key: str | None) -> str:
    """Return the id of a comment: the same for the same key, in the form that Linear asks for."""
    if key is None:
        return str(uuid4())
    return str(UUID(bytes=uuid5(NAMESPACE_URL, f"sortie:{key}").bytes, version=4))
