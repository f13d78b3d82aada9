"""What ``sortie doctor`` asks Linear: who am I, what may I do, is all there, what is left."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import trio

from sortie.http.budget import Use
from sortie.http.checks import budget_check, clock_check
from sortie.model import TrackerError, TrackerErrorKind, state_key
from sortie.model.checks import Check, CheckResult, failed, passed, warned
from sortie.trackers.http.added_states import AddedStates
from sortie.trackers.linear import queries
from sortie.trackers.linear.api import LinearApi
from sortie.trackers.linear.labels import labels_named
from sortie.trackers.linear.team import Team, find_team

_NO_ISSUE = "00000000-0000-4000-8000-000000000000"


class LinearChecks:
    """Asks what the checks need; each remembers what the later ones look at."""

    def __init__(
        self,
        api: LinearApi,
        key: str,
        added: AddedStates,
        query_filter: Mapping[str, Any] | None,
    ) -> None:
        self._api = api
        self._key = key
        self._added = added
        self._filter = query_filter
        self._team: Team | None = None

    def checks(self) -> Sequence[Check]:
        """Return the checks of one team's tracker, in order."""
        new_key = (
            "make a personal API key in Linear under Settings > Security & access, and put it into"
            " the variable that tracker.api_key names"
        )
        rights = "make a key with the permissions Read, Write and Create comments"
        checks = [
            Check(name="credential", ask=self.credential, remedy=new_key),
            clock_check(self._api.client, "credential"),
            Check(name="project", ask=self.project, needs=("credential",)),
            Check(name="states", ask=self.states, needs=("project",)),
            Check(name="read", ask=self.read, needs=("project",)),
            Check(name="write", ask=self.write, needs=("project",), remedy=rights),
            budget_check(self._api.client, "credential"),
        ]
        if self._filter is not None:
            remedy = "mend tracker.query_filter; it is an IssueFilter of Linear's API as JSON"
            checks.append(Check(name="filter", ask=self.filter, needs=("read",), remedy=remedy))
        return checks

    async def credential(self) -> CheckResult:
        data = await self._api.ask(queries.VIEWER, "cannot tell who the key belongs to")
        viewer, organization = data["viewer"], data["organization"]
        kinds = (("admin", "an administrator"), ("app", "an application"), ("guest", "a guest"))
        role = next((word for kind, word in kinds if viewer[kind]), "a member")
        name = viewer["displayName"] or viewer["name"]
        return passed(f"the key is that of {name}, {role} of {organization['name']}")

    async def project(self) -> CheckResult:
        try:
            self._team = await find_team(self._api, self._key)
        except TrackerError as exc:
            if exc.kind is not TrackerErrorKind.NOT_FOUND:
                raise
            data = await self._api.ask(queries.TEAM_KEYS, "cannot list teams")
            keys = ", ".join(f"{node['key']} ({node['name']})" for node in data["teams"]["nodes"])
            return failed(
                f"no team with the key {self._key} can be seen; {keys or 'none'} can",
                "set tracker.project to one of these, or have the key's owner join the team",
            )
        return passed(f"team {self._team.key} is {self._team.name}")

    async def states(self) -> CheckResult:
        await trio.lowlevel.checkpoint()
        team, added = self._team, self._added
        assert team is not None
        there = f"team {team.key} has {team.states_text}"
        if both := added.in_both(team.state_names):
            return failed(
                f"tracker.label_states: {' and '.join(both)} is a state of team {team.key} itself",
                "take it out of tracker.label_states: a state is a label or one of the team's",
            )
        if missing := team.missing(added.own(added.states.named)):
            return failed(
                f"{', '.join(missing)}: no such state; {there}",
                "spell the states of the settings as the team does, or add them to its workflow",
            )
        terminal = {state_key(state.name) for state in team.states if state.is_terminal}
        over = [name for name in added.states.active if state_key(name) in terminal]
        if over:
            return warned(
                f"{', '.join(over)}: an active state that is the end of an issue to Linear",
                "take it out of tracker.active_states, unless agents are to work on what is done",
            )
        if added:
            return await self._labels(team, there)
        return passed(f"all states of the settings exist; {there}")

    async def _labels(self, team: Team, there: str) -> CheckResult:
        """Look for the labels that stand for states."""
        names = self._added.names
        found = await labels_named(self._api, team.id, names)
        groups = [f'"{label.name}"' for label in found if label.is_group]
        known = {state_key(label.name) for label in found if not label.is_group}
        lacking = [f'"{name}"' for name in names if state_key(name) not in known]
        if lacking and groups:
            return failed(
                f"tracker.label_states: {' and '.join(groups)} is a group of labels in Linear, "
                "which can be on no issue",
                "rename the group, or call the state otherwise",
            )
        if lacking:
            return warned(
                f"team {team.key} has no label {' and no '.join(lacking)}, which the first move to "
                "that state makes",
                "make it in Linear, for the team, where the key may not",
            )
        return passed(f"all states of the settings exist; {there}; labels are {', '.join(names)}")

    async def read(self) -> CheckResult:
        await self._list({"team": {"key": {"eqIgnoreCase": self._key}}})
        return passed(f"issues of team {self._key} can be read")

    async def filter(self) -> CheckResult:
        found = await self._list(dict(self._filter or {}))
        if found:
            return passed("Linear takes tracker.query_filter, and it finds issues")
        return warned(
            "Linear takes tracker.query_filter, and it finds no issue",
            "look at it, where there should be some",
        )

    async def _list(self, condition: Mapping[str, Any]) -> int:
        data = await self._api.ask(
            queries.ISSUES, "cannot list issues", filter=condition, first=1, after=None
        )
        return len(data["issues"]["nodes"])

    async def write(self) -> CheckResult:
        """Change and comment on an issue that is not there: whoever may not is told so first."""
        for what, document, variables in (
            ("move an issue", queries.MOVE, {"id": _NO_ISSUE, "state": _NO_ISSUE}),
            ("comment", queries.COMMENT, {"id": _NO_ISSUE, "issue": _NO_ISSUE, "body": "-"}),
        ):
            try:
                await self._api.ask(document, f"cannot {what}", Use.WRITE, **variables)
            except TrackerError as exc:
                if exc.kind not in (TrackerErrorKind.NOT_FOUND, TrackerErrorKind.INVALID):
                    raise
        return passed("the key may move issues and comment, as far as can be told without doing it")
