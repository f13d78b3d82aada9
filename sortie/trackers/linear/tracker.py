"""The Linear tracker: the issues of one team.

Rule 1: only issues of the team that are neither archived nor in the trash are there.
Rule 2: a state is found by its name among those of the issue's own team, and asked for by its id.
Rule 3: a change whose answer was lost is looked for before anybody is told that it failed.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Sequence
from uuid import NAMESPACE_URL, UUID, uuid4, uuid5

import trio

from sortie.model import Issue, IssueId, TrackerError, TrackerErrorKind, same_state, state_key
from sortie.model.checks import Check
from sortie.telemetry.log.structlog_alone import structlog
from sortie.trackers import (
    IssuesRead,
    Overview,
    RateBudget,
    Tracker,
    TrackerContext,
    TrackerStates,
    UnreadableIssue,
)
from sortie.trackers.http.budget import Use
from sortie.trackers.http.errors import LostAnswer
from sortie.trackers.linear import queries
from sortie.trackers.linear.api import LinearApi, nodes_of
from sortie.trackers.linear.candidates import Candidates, Wanted
from sortie.trackers.linear.checks import linear_checks
from sortie.trackers.linear.issues import Node, comments_of, issue_of
from sortie.trackers.linear.rereads import Rereads
from sortie.trackers.linear.rest import Rest
from sortie.trackers.linear.settings_check import filter_of
from sortie.trackers.linear.team import Team, TeamState, find_team, state_named

TEAM_LIFE = 600.0
"""Seconds after which the team's states are asked for again."""

_IDENTIFIER = re.compile(r"([A-Za-z][A-Za-z0-9_]*)-([0-9]{1,9})")

log = structlog.get_logger()


class LinearTracker(Tracker):
    """Issues of one team."""

    def __init__(self, api: LinearApi, context: TrackerContext) -> None:
        assert context.project is not None
        self._api = api
        self._key = context.project
        self._states = context.states
        self._filter = filter_of(context.query_filter)
        self._team: tuple[Team, float] | None = None
        self._rest = Rest(api)
        self._candidates = Candidates(api, self._rest.complete)
        self._rereads = Rereads(api, self._rest, self._key)
        self._moving: dict[IssueId, trio.Lock] = defaultdict(trio.Lock)
        self._told_missing: list[str] = []

    def configure(self, states: TrackerStates) -> None:
        """Tell by these from now on which states are terminal, and look for them in the team."""
        self._states = states
        self._candidates.forget()

    async def fetch_candidates(self, states: Collection[str]) -> Sequence[Issue]:
        """Return the team's issues in these states, without comments."""
        if not states:
            await trio.lowlevel.checkpoint()
            return ()
        before = self._candidates.items
        issues = await self._listed(states)
        if before and not issues:
            # A state that was renamed looks like one without issues.
            self._team = None
            issues = await self._listed(states)
        return issues

    async def _listed(self, states: Collection[str]) -> Sequence[Issue]:
        team = await self._team_with(states)
        state_ids = team.ids_of(states)
        wanted = Wanted(
            team_id=team.id,
            state_ids=state_ids,
            terminal=self._states.terminal,
            query_filter=self._filter,
        )
        issues = await self._candidates.refresh(wanted, trio.current_time())
        names = set(map(state_key, states))
        if all(state_key(issue.state) in names for issue in issues):
            return issues
        return tuple(issue for issue in issues if state_key(issue.state) in names)

    async def fetch_by_ids(self, ids: Collection[IssueId]) -> IssuesRead:
        """Read these issues again, with their comments."""
        wanted = list(dict.fromkeys(ids))
        nodes = await self._rereads.of_ids(wanted)
        if wanted and not nodes:
            # All at once: rather the key lost sight of the team, which is told then.
            await self._found_team()
        issues: list[Issue] = []
        failed: dict[IssueId, TrackerError] = {}
        for issue_id in wanted:
            node = nodes.get(issue_id)
            if node is None or not self._rereads.is_ours(node):
                self._candidates.drop(issue_id)
                continue
            self._candidates.learn(node, self._states.terminal)
            try:
                issues.append(self._with_comments(node))
            except TrackerError as exc:
                failed[issue_id] = exc
        return IssuesRead(issues=tuple(issues), failed=failed)

    async def find(self, name: str) -> Issue | None:
        """Return the issue of that identifier, such as ENG-12, or else of that id."""
        node = None
        if (parts := _IDENTIFIER.fullmatch(name)) and same_state(parts[1], self._key):
            number = {"number": {"eq": int(parts[2])}}
            team = {"team": {"key": {"eqIgnoreCase": self._key}}}
            node = await self._rereads.one({"and": [team, number]}, name)
        if node is None:
            try:
                node = await self._rereads.one({"id": {"in": [name]}}, name)
            except TrackerError as exc:
                if exc.kind not in (TrackerErrorKind.INVALID, TrackerErrorKind.NOT_FOUND):
                    raise
        if node is None or not self._rereads.is_ours(node):
            return None
        return self._with_comments(node)

    async def transition(self, issue: Issue, state: str) -> Issue:
        """Move an issue, if it is still where the caller believes it to be.

        Linear has no condition for a change, so what somebody does between our last look and the
        change is overwritten; moves of this daemon are made one after the other.
        """
        async with self._moving[issue.id]:
            try:
                return await self._transition(issue, state)
            finally:
                if not self._moving[issue.id].statistics().tasks_waiting:
                    del self._moving[issue.id]

    async def _transition(self, issue: Issue, state: str) -> Issue:
        node, states = await self._rereads.with_states(issue)
        present = self._with_comments(node)
        if not same_state(present.state, issue.state):
            raise _conflict(present, issue.state)
        target = state_named(states, state)
        if target is None:
            names = ", ".join(each.name for each in states)
            raise TrackerError(
                TrackerErrorKind.INVALID,
                f"cannot move {issue.identifier} to {state!r}: its team has the states {names}",
            )
        if str(node["state"]["name"]) == target.name:
            return present
        moved = await self._moved(issue, target)
        answer = issue_of(moved, self._states.terminal, present.comments)
        if not same_state(answer.state, target.name):
            raise _conflict(answer, target.name)
        self._candidates.learn(moved, self._states.terminal)
        return answer

    async def _moved(self, issue: Issue, target: TeamState) -> Node:
        """Make the move and return the issue as it stands then. Raises TrackerError."""
        what = f"cannot move {issue.identifier} to {target.name}"
        try:
            data = await self._api.ask(
                queries.MOVE, what, Use.WRITE, id=str(issue.id), state=target.id
            )
            payload = data["issueUpdate"]
            if payload["success"] and payload["issue"] is not None:
                return await self._rest.complete(payload["issue"])
            raise LostAnswer(TrackerErrorKind.UNAVAILABLE, f"{what}: Linear says no success")
        except LostAnswer as lost:
            if lost.retry_after is not None:
                raise  # who tries again looks first
            node, _ = await self._rereads.with_states(issue)
            if same_state(str(node["state"]["name"]), issue.state):
                raise lost from None
            return node

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
            if not await self._has_comment(comment_id, what):
                raise

    def overview(self) -> Overview:
        """Return what the list holds."""
        items = self._candidates.items.values()
        return Overview(
            issues=tuple(item.issue for item in items if item.issue is not None),
            unreadable=tuple(
                UnreadableIssue(
                    message=str(item.error), names=frozenset({item.id, item.identifier})
                )
                for item in items
                if item.error is not None
            ),
        )

    def budgets(self) -> Sequence[RateBudget]:
        """Return what Linear still lets the credential ask: requests, and points of complexity."""
        return self._api.client.budgets()

    def list_pause(self) -> float:
        """See Tracker."""
        return self._api.client.list_pause()

    def checks(self) -> Sequence[Check]:
        """Ask who the key belongs to, for the team and its states, and for what is left."""
        return linear_checks(self._api, self._key, self._states, self._filter)

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
        if team is None or len(missing) == len(states) or missing not in ([], self._told_missing):
            team = await self._found_team()
            missing = team.missing(states)
        if len(missing) == len(states):
            raise TrackerError(
                TrackerErrorKind.INVALID,
                f"team {team.key} of Linear has none of the states {', '.join(missing)};"
                f" it has {team.state_names}",
            )
        if missing and missing != self._told_missing:
            log.warning(
                "tracker.states_missing", team=team.key, missing=missing, known=team.state_names
            )
        self._told_missing = missing
        return team

    def _with_comments(self, node: Node) -> Issue:
        """Return a node as an issue. Raises TrackerError (INVALID) where it cannot be read."""
        try:
            comments = comments_of(nodes_of(node["comments"]))
        except (KeyError, TypeError, ValueError) as exc:
            raise TrackerError(
                TrackerErrorKind.INVALID,
                f"a comment on Linear issue {node['identifier']} makes no sense: {exc!r}",
            ) from exc
        return issue_of(node, self._states.terminal, comments)

    async def _has_comment(self, comment_id: str, what: str) -> bool:
        data = await self._api.ask(queries.COMMENT_IS_THERE, what, id=comment_id)
        return bool(nodes_of(data["comments"]))


def _conflict(present: Issue, expected: str) -> TrackerError:
    return TrackerError(
        TrackerErrorKind.CONFLICT,
        f"{present.identifier} is in {present.state}, no longer in {expected}",
    )


def _comment_id(key: str | None) -> str:
    """Return the id of a comment: the same for the same key, in the form that Linear asks for."""
    if key is None:
        return str(uuid4())
    return str(UUID(bytes=uuid5(NAMESPACE_URL, f"sortie:{key}").bytes, version=4))
