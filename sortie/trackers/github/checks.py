"""What ``sortie doctor`` asks GitHub, without changing anything."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from sortie.model import state_key
from sortie.model.checks import Check, CheckResult, failed, passed, warned
from sortie.trackers.github.api import SEARCH_LIMIT, GitHubApi
from sortie.trackers.github.items import Repository
from sortie.trackers.github.label_states import LabelStates
from sortie.trackers.github.search_filter import query_of
from sortie.trackers.http.client import HttpClient
from sortie.trackers.http.requests import Request

_CLOCK_TOLERANCE = 60.0
"""Seconds by which the clocks may differ before a person should know."""

_TOKEN_REMEDY = (
    "make a fine-grained token for this repository with the permission Issues (read and write), "
    "and set the variable that tracker.api_key refers to"
)


class GitHubChecks:
    """Asks as little as each check needs."""

    def __init__(
        self,
        client: HttpClient,
        api: GitHubApi,
        repository: Repository,
        query_filter: str | None,
    ) -> None:
        self._client = client
        self._api = api
        self._repository = repository
        self._filter = query_filter

    def checks(self, states: LabelStates) -> Sequence[Check]:
        """Return the checks, in their order."""

        async def labels() -> CheckResult:
            return _about_labels(states, await self._api.labels(), self._repository.full_name)

        checks = [
            Check(
                name="reach",
                ask=self._reach,
                remedy="check tracker.endpoint, the network, and HTTPS_PROXY and SSL_CERT_FILE",
            ),
            Check(name="clock", ask=self._clock, needs=("reach",)),
            Check(
                name="project",
                ask=self._project,
                needs=("reach",),
                remedy="check tracker.project (OWNER/REPOSITORY); " + _TOKEN_REMEDY,
            ),
            Check(name="read", ask=self._read, needs=("project",), remedy=_TOKEN_REMEDY),
            Check(name="write", ask=self._write, needs=("project",), remedy=_TOKEN_REMEDY),
            Check(name="states", ask=labels, needs=("read",), remedy=_TOKEN_REMEDY),
        ]
        if self._filter is not None:
            remedy = "try tracker.query_filter in the search of issues on GitHub's pages"
            checks.append(Check(name="filter", ask=self._search, needs=("read",), remedy=remedy))
        checks.append(Check(name="budget", ask=self._budget, needs=("reach",)))
        return checks

    async def _reach(self) -> CheckResult:
        """Ask what costs nothing; a dead token is told here."""
        limits = await self._rate_limit()
        del limits
        return passed(f"{self._client.base} answers and takes the credential")

    async def _rate_limit(self) -> Mapping[str, Any]:
        request = Request(
            path="/rate_limit",
            what="cannot ask for the rate limit",
            wanted=frozenset({404}),  # Enterprise Server with its limits switched off
        )
        answer = await self._client.ask(request)
        found = answer.json() if answer.ok else {}
        return found if isinstance(found, dict) else {}

    async def _clock(self) -> CheckResult:
        await self._rate_limit()
        if self._client.server_time is None:
            return warned("it does not say what time it is", "compare the clock by hand")
        there, _ = self._client.server_time
        apart = (datetime.now(UTC) - there).total_seconds()
        if abs(apart) <= _CLOCK_TOLERANCE:
            return passed(f"the clocks are {abs(apart):.0f} s apart")
        return warned(
            f"this machine's clock is {abs(apart):.0f} s {'ahead' if apart > 0 else 'behind'}",
            "have it set by NTP; GitHub Apps cannot sign in with a clock that is ahead",
        )

    async def _project(self) -> CheckResult:
        found = await self._api.repository()
        name = self._repository.full_name
        if found.get("archived"):
            return failed(f"{name} is archived", "unarchive it: its issues cannot be changed")
        if found.get("has_issues") is False:
            return failed(f"{name} has no issues", "switch Issues on in its settings")
        visibility = "private" if found.get("private") else "public"
        return passed(f"{name} is there, {visibility}, with issues")

    async def _read(self) -> CheckResult:
        count = len(await self._api.issues(closed_too=False, since=_now()))
        return passed(f"issues can be read ({count} changed just now)")

    async def _write(self) -> CheckResult:
        found = await self._api.repository()
        permissions = found.get("permissions")
        name = self._repository.full_name
        if not isinstance(permissions, dict):
            return warned(
                f"GitHub does not say what may be done in {name}",
                "see that the credential has the permission Issues (read and write)",
            )
        granted = [key for key in ("admin", "maintain", "push", "triage") if permissions.get(key)]
        if granted:
            return passed(
                f"the account may label and close issues ({granted[0]}); whether the token was "
                "given Issues (write) too is seen with the first change only"
            )
        return failed(f"the account may not label issues in {name}", "give it the role Triage")

    async def _search(self) -> CheckResult:
        assert self._filter is not None
        found = await self._api.search(
            query_of(self._repository.full_name, self._filter, closed=False)
        )
        return passed(f"the filter finds {len(found)} open issues, of {SEARCH_LIMIT} at most")

    async def _budget(self) -> CheckResult:
        resources = (await self._rate_limit()).get("resources")
        if not isinstance(resources, dict) or not isinstance(resources.get("core"), dict):
            return passed("it limits no requests")
        core = resources["core"]
        left, limit = core.get("remaining"), core.get("limit")
        told = f"{left} of {limit} requests are left in this hour"
        if isinstance(left, int) and isinstance(limit, int) and left * 10 < limit:
            return warned(told, "others use this account too; give Sortie one of its own")
        return passed(told)


def _about_labels(states: LabelStates, labels: Mapping[str, str], name: str) -> CheckResult:
    missing = [state for state in states.states.named if state_key(state) not in labels]
    unlabeled = states.unlabeled
    told = f"{name} has labels for {_listed(s for s in states.states.named if s not in missing)}"
    if not missing:
        return passed(told)
    active = [s for s in missing if s in states.states.active and s != unlabeled]
    remedy = f"make {_listed(missing)} under Issues, Labels; it has {_listed(labels.values(), 20)}"
    if active:
        return failed(f"{name} has no label for the active states {_listed(active)}", remedy)
    return warned(
        f"{name} has no label for {_listed(missing)}, which Sortie will make when it needs it",
        remedy,
    )


def _listed(names: Any, most: int = 10) -> str:
    found = list(names)
    more = f" and {len(found) - most} more" if len(found) > most else ""
    return (", ".join(map(repr, found[:most])) or "none") + more


def _now() -> datetime:
    return datetime.now(UTC)
