"""What ``sortie doctor`` asks GitHub, without changing anything."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime

from sortie.http.checks import budget_check, clock_check
from sortie.http.client import HttpClient
from sortie.http.requests import HttpRequest
from sortie.model import state_key
from sortie.model.checks import Check, CheckResult, failed, passed, warned
from sortie.trackers.github.api import SEARCH_LIMIT, GitHubApi
from sortie.trackers.github.items import GitHubRepository
from sortie.trackers.github.search_filter import query_of
from sortie.trackers.http.label_states import LabelStates

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
        repository: GitHubRepository,
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

        network = "check tracker.endpoint, the network, and HTTPS_PROXY and SSL_CERT_FILE"
        project = "check tracker.project (OWNER/REPOSITORY); " + _TOKEN_REMEDY
        checks = [
            Check(name="reach", ask=self._reach, remedy=network),
            clock_check(self._client),
            Check(name="project", ask=self._project, needs=("reach",), remedy=project),
            Check(name="read", ask=self._read, needs=("project",), remedy=_TOKEN_REMEDY),
            Check(name="write", ask=self._write, needs=("project",), remedy=_TOKEN_REMEDY),
            Check(name="states", ask=labels, needs=("read",), remedy=_TOKEN_REMEDY),
        ]
        if self._filter is not None:
            remedy = "try tracker.query_filter in the search of issues on GitHub's pages"
            checks.append(Check(name="filter", ask=self._search, needs=("read",), remedy=remedy))
        return [*checks, budget_check(self._client)]

    async def _reach(self) -> CheckResult:
        """Ask for the limits, which costs nothing; a dead token is told here."""
        missing = frozenset({404})  # on an Enterprise Server with its limits switched off
        what = "cannot ask for the rate limit"
        await self._client.ask(HttpRequest(path="/rate_limit", what=what, wanted=missing))
        return passed(f"{self._client.endpoint} answers and takes the credential")

    async def _project(self) -> CheckResult:
        found = await self._api.repository()
        name = self._repository.full_name
        if found.get("archived"):
            return failed(f"{name} is archived", "unarchive it: its issues cannot be changed")
        if found.get("has_issues") is False:
            return failed(f"{name} has no issues", "switch Issues on in its settings")
        visibility = "private" if found.get("private") else "public"
        public = visibility == "public"
        return passed(f"{name} is there, {visibility}, with issues", public=public)

    async def _read(self) -> CheckResult:
        count = len(await self._api.issues(closed_too=False, since=datetime.now(UTC)))
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
        query = query_of(self._repository.full_name, self._filter or "", closed=False)
        found = await self._api.search(query)
        return passed(f"the filter finds {len(found)} open issues, of {SEARCH_LIMIT} at most")


def _about_labels(states: LabelStates, labels: Mapping[str, str], name: str) -> CheckResult:
    named = states.states.named
    missing = [state for state in named if state_key(state) not in labels]
    if not missing:
        return passed(f"{name} has labels for {_listed(named)}")
    active = [s for s in missing if s in states.states.active and s != states.unlabeled]
    remedy = f"make {_listed(missing)} under Issues, Labels; it has {_listed(labels.values(), 20)}"
    if active:
        return failed(f"{name} has no label for the active states {_listed(active)}", remedy)
    return warned(
        f"{name} has no label for {_listed(missing)}, which Sortie will make when it needs it",
        remedy,
    )


def _listed(names: Iterable[str], most: int = 10) -> str:
    found = list(names)
    more = f" and {len(found) - most} more" if len(found) > most else ""
    return (", ".join(map(repr, found[:most])) or "none") + more
