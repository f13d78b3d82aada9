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
from sortie.trackers.http.listed import unreadable_issue
from sortie.trackers.http.tracker import HttpTracker
from sortie.trackers.linear import queries
from sortie.trackers.linear.api import PROVIDER, LinearApi, credential_of, nodes_of
from sortie.trackers.linear.candidates import LinearCandidates, WantedIssues
from sortie.trackers.linear.checks import LinearChecks
from sortie.trackers.linear.issues import Node, comments_of, issue_of
from sortie.trackers.linear.people import LinearPeople
from sortie.trackers.linear.rereads import LinearReader
from sortie.trackers.linear.settings_check import filter_of
from sortie.trackers.linear.team import Team, find_team, state_named, states_of

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
        self._states = context.states
        self._filter = filter_of(context.query_filter)
        self._team: tuple[Team, float] | None = None
        self._reader = LinearReader(api, self._key)
        self._candidates = LinearCandidates(api, self._reader.complete)
        self._logged_missing: list[str] = []

    def configure(self, states: TrackerStates) -> None:
        """Tell by these from now on which states are terminal, and look for them in the team."""
        self._states = states
        self._candidates.list.forget()

    def checks(self) -> Sequence[Check]:
        """Ask who the key belongs to, for the team and its states, and for what is left."""
        return LinearChecks(self._api, self._key, self._states, self._filter).checks()

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
            state_ids=team.ids_of(states),
            terminal=self._states.terminal,
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
        return issue_of(item, self._states.terminal, comments)

    async def _check_project(self) -> None:
        await self._found_team()

    def _heard(self, item: Node) -> None:
        self._candidates.learn(item, self._states.terminal)

    def _gone(self, issue_id: IssueId) -> None:
        self._candidates.list.drop(issue_id)

    # The steps of a move

    async def _present(self, issue: Issue) -> Node:
        return await self._reader.with_states(issue)

    def _state_of(self, item: Node) -> str:
        return str(item["state"]["name"])

    async def _change(self, item: Node, issue: Issue, state: str) -> Node:
        states = states_of(item["team"]["states"])
        target = state_named(states, state)
        if target is None:
            names = ", ".join(each.name for each in states)
            raise TrackerError(
                TrackerErrorKind.INVALID,
                f"cannot move {issue.identifier} to {state!r}: its team has the states {names}",
            )
        what = f"cannot move {issue.identifier} to {target.name}"
        data = await self._api.ask(queries.MOVE, what, Use.WRITE, id=str(issue.id), state=target.id)
        payload = data["issueUpdate"]
        if not payload["success"] or payload["issue"] is None:
            raise LostAnswer(TrackerErrorKind.UNAVAILABLE, f"{what}: Linear says no success")
        return {**item, **await self._reader.complete(payload["issue"])}

    # Teams and states

    async def _found_team(self) -> Team:
        team = await find_team(self._api, self._key)
        self._team = team, trio.current_time()
        return team

    async def _team_with(self, states: Collection[str]) -> Team:
        """Return the team, asked for anew where a state is not known. Raises TrackerError."""
        team, missing = None, list(states)
        if self._team is not None and trio.current_time() - self._team[1] < TEAM_LIFE:
            team = self._team[0]
            missing = team.missing(states)
        if team is None or len(missing) == len(states) or missing not in ([], self._logged_missing):
            team = await self._found_team()
            missing = team.missing(states)
        if len(missing) == len(states):
            raise TrackerError(
                TrackerErrorKind.INVALID,
                f"team {team.key} of Linear has none of the states {', '.join(missing)};"
                f" it has {team.state_names}",
            )
        if missing and missing != self._logged_missing:
            log.warning(
                "tracker.states_missing", team=team.key, missing=missing, known=team.state_names
            )
        self._logged_missing = missing
        return team


def _comment_id(key: str | None) -> str:
    """Return the id of a comment: the same for the same key, in the form that Linear asks for."""
    if key is None:
        return str(uuid4())
    return str(UUID(bytes=uuid5(NAMESPACE_URL, f"sortie:{key}").bytes, version=4))
