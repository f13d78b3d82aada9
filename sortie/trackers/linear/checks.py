"""What ``sortie doctor`` asks Linear: who am I, what may I do, is all there, what is left."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import trio

from sortie.model import TrackerError, TrackerErrorKind, state_key
from sortie.model.checks import Check, CheckResult, failed, passed, warned
from sortie.trackers import TrackerStates
from sortie.trackers.http.budget import Use
from sortie.trackers.linear import queries
from sortie.trackers.linear.api import LinearApi
from sortie.trackers.linear.team import Team, find_team

CLOCK_LIMIT = 60.0
"""Seconds by which this machine's clock may differ from Linear's without a warning."""

_NO_ISSUE = "00000000-0000-4000-8000-000000000000"


def linear_checks(
    api: LinearApi, key: str, states: TrackerStates, query_filter: Mapping[str, Any] | None
) -> Sequence[Check]:
    """Return the checks of one team's tracker, in order."""
    asked = _Questions(api, key, states, query_filter)
    checks = [
        Check(
            name="credential",
            ask=asked.credential,
            remedy="make a personal API key in Linear under Settings > Security & access, and put"
            " it into the variable that tracker.api_key names",
        ),
        Check(name="clock", ask=asked.clock, needs=("credential",)),
        Check(name="project", ask=asked.project, needs=("credential",)),
        Check(name="states", ask=asked.states, needs=("project",)),
        Check(name="read", ask=asked.read, needs=("project",)),
        Check(
            name="write",
            ask=asked.write,
            needs=("project",),
            remedy="make a key with the permissions Read, Write and Create comments",
        ),
        Check(name="budget", ask=asked.budget, needs=("credential",)),
    ]
    if query_filter is not None:
        remedy = "mend tracker.query_filter; it is an IssueFilter of Linear's API as JSON"
        checks.append(Check(name="filter", ask=asked.filter, needs=("read",), remedy=remedy))
    return checks


class _Questions:
    """What the checks ask; each remembers what the later ones need."""

    def __init__(
        self,
        api: LinearApi,
        key: str,
        states: TrackerStates,
        query_filter: Mapping[str, Any] | None,
    ) -> None:
        self._api = api
        self._key = key
        self._states = states
        self._filter = query_filter
        self._team: Team | None = None

    async def credential(self) -> CheckResult:
        data = await self._api.ask(queries.VIEWER, "cannot tell who the key belongs to")
        viewer, organization = data["viewer"], data["organization"]
        kinds = (("admin", "an administrator"), ("app", "an application"), ("guest", "a guest"))
        role = next((word for kind, word in kinds if viewer[kind]), "a member")
        name = viewer["displayName"] or viewer["name"]
        return passed(f"the key is that of {name}, {role} of {organization['name']}")

    async def clock(self) -> CheckResult:
        await trio.lowlevel.checkpoint()
        known = self._api.client.server_time
        if known is None:
            return passed("Linear does not tell its time")
        there, heard_at = known
        passed_since = trio.current_time() - heard_at
        ahead = (datetime.now(UTC) - there).total_seconds() - passed_since
        if abs(ahead) <= CLOCK_LIMIT:
            return passed("this machine's clock is right, by Linear's")
        direction = "ahead of" if ahead > 0 else "behind"
        return warned(
            f"this machine's clock is {abs(ahead):.0f} s {direction} Linear's",
            "set the clock, or have it set by NTP; times in logs and history are wrong until then",
        )

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
        team = self._team
        assert team is not None
        there = f"team {team.key} has {team.state_names}"
        if missing := team.missing(self._states.named):
            return failed(
                f"{', '.join(missing)}: no such state; {there}",
                "spell the states of the settings as the team does, or add them to its workflow",
            )
        terminal = {state_key(state.name) for state in team.states if state.is_terminal}
        over = [name for name in self._states.active if state_key(name) in terminal]
        if over:
            return warned(
                f"{', '.join(over)}: an active state that is the end of an issue to Linear",
                "take it out of tracker.active_states, unless agents are to work on what is done",
            )
        return passed(f"all states of the settings exist; {there}")

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

    async def budget(self) -> CheckResult:
        data = await self._api.ask(queries.LIMITS, "cannot read the limits")
        limits = data["rateLimitStatus"]["limits"]
        told = ", ".join(
            f"{limit['remainingAmount']:g} of {limit['allowedAmount']:g} {limit['type']}"
            for limit in limits
        )
        low = [each for each in limits if each["remainingAmount"] * 10 < each["allowedAmount"]]
        if low:
            return warned(
                f"little is left for this hour: {told}",
                "see what else uses the limit of this key's owner, or poll less often",
            )
        return passed(f"left for this hour: {told or 'as much as one likes'}")
