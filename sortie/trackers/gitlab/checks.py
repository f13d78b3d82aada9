"""What ``sortie doctor`` asks GitLab: who am I, what may I do, is all there, what is left."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import UTC, date, datetime
from difflib import get_close_matches

import trio

from sortie.http.checks import budget_check, clock_check
from sortie.http.client import HttpClient
from sortie.http.json_values import mapping_of, word_of
from sortie.model import state_key
from sortie.model.checks import Check, CheckResult, failed, passed, warned
from sortie.trackers.gitlab.api import GitLabApi
from sortie.trackers.gitlab.issues import GitLabIssue, IssueReader, key_of
from sortie.trackers.gitlab.query_filter import Params

EXPIRES_SOON = 14
"""Days before the end of a token from which on it is told."""

_EDITIONS = {"True": "Enterprise", "False": "Community"}

_REPORTER, _DEVELOPER = 20, 30

_NEW_TOKEN = (
    "make a project or group access token with the scope api and the role Developer, and put it "
    "into the variable that tracker.api_key names"
)


class GitLabChecks:
    """Asks what the checks need; each remembers what the later ones look at."""

    def __init__(
        self, client: HttpClient, api: GitLabApi, reader: IssueReader, query_filter: Params
    ) -> None:
        self._client = client
        self._api = api
        self._reader = reader
        self._filter = query_filter
        self._token: GitLabIssue = {}
        self._project: GitLabIssue = {}

    def checks(self) -> Sequence[Check]:
        """Return the checks of one tracker, in order."""
        member = "look at tracker.project and gitlab.scope, and make the token's owner a member"
        checks = [
            Check(name="reach", ask=self.reach),
            clock_check(self._client),
            Check(name="credential", ask=self.credential, needs=("reach",), remedy=_NEW_TOKEN),
            Check(name="scopes", ask=self.scopes, needs=("credential",)),
            Check(name="project", ask=self.project, needs=("credential",), remedy=member),
            Check(name="read", ask=self.read, needs=("project",)),
            Check(name="write", ask=self.write, needs=("read", "scopes")),
            Check(name="states", ask=self.states, needs=("read",)),
        ]
        if self._filter:
            remedy = "mend tracker.query_filter"
            checks.append(Check(name="filter", ask=self.filter, needs=("read",), remedy=remedy))
        return [*checks, budget_check(self._client)]

    async def reach(self) -> CheckResult:
        data = await self._api.metadata()
        edition = _EDITIONS.get(str(data.get("enterprise")), "unknown")
        links = "; issues have no blockers in it" if data.get("enterprise") is False else ""
        version = data.get("version", "of a version that it does not tell")
        return passed(f"GitLab {version}, {edition} Edition, answers{links}")

    async def credential(self) -> CheckResult:
        user = await self._api.user()
        self._token = await self._api.token()
        whose = f"the token is that of {user.get('username')}"
        until = self._token.get("expires_at")
        if not isinstance(until, str):
            return passed(whose)
        left = (date.fromisoformat(until[:10]) - datetime.now(UTC).date()).days
        told = f"{whose}, and is good until {until[:10]}"
        return passed(told) if left > EXPIRES_SOON else warned(told, _NEW_TOKEN)

    async def scopes(self) -> CheckResult:
        await trio.lowlevel.checkpoint()
        scopes = [str(scope) for scope in self._token.get("scopes") or ()]
        told = f"the token has {', '.join(scopes)}"
        if not scopes:
            return passed("this kind of token does not tell what it may do")
        if "api" in scopes:
            return passed(told)
        if scopes == ["granular"]:
            return warned(
                "the token has rights of its own, which cannot be asked for",
                "see that it may read and write issues, and make comments",
            )
        return failed(f"{told}, which is not enough to change issues", _NEW_TOKEN)

    async def project(self) -> CheckResult:
        if self._api.scope.is_group:
            await self._api.check_scope()
            return passed(f"the group {self._api.scope.name} can be seen")
        self._project = await self._api.project()
        path = self._project.get("path_with_namespace")
        if self._project.get("archived") is True:
            return failed(
                f"{path} is archived, and takes no change", "unarchive it, or choose another"
            )
        if self._project.get("issues_enabled") is False:
            return failed(
                f"issues are switched off in {path}",
                "switch them on: Settings > General > Visibility, project features, permissions",
            )
        return passed(f"{path} is project {self._project.get('id')}", public=self._is_public())

    async def read(self) -> CheckResult:
        first, count = await self._api.first_issue(())
        number = f"{count} open issues" if count is not None else "open issues"
        if first is None:
            return passed("issues can be read; none is open")
        if not self._project:  # of a group
            with suppress(ValueError):
                self._project = await self._api.project(key_of(first).project)
        told = f"{number} can be read" if count != 1 else "1 open issue can be read"
        return passed(told, public=self._is_public())

    def _is_public(self) -> bool | None:
        """Tell whether everybody with an account can write issues in the project."""
        visibility = self._project.get("visibility")
        if not isinstance(visibility, str):
            return None
        return visibility == "public" and self._project.get("issues_access_level") != "private"

    async def write(self) -> CheckResult:
        await trio.lowlevel.checkpoint()
        level = _level(self._project.get("permissions"))
        where = self._project.get("path_with_namespace", "the projects of the group")
        if level is None:
            return passed(f"GitLab does not tell what the token may change in {where}")
        if level >= _DEVELOPER:
            return passed(f"the token's role in {where} may change issues")
        sentence = f"the token's role in {where} is below Developer"
        if level >= _REPORTER:
            return warned(f"{sentence}, which may not be enough to change issues", _NEW_TOKEN)
        return failed(f"{sentence}, and may not change issues", _NEW_TOKEN)

    async def states(self) -> CheckResult:
        if not self._project:
            await trio.lowlevel.checkpoint()
            return passed("no issue is open, so that no project's labels were looked at")
        project = int(self._project["id"])
        names = await self._api.labels(project)
        there = {state_key(name): name for name in names}
        missing = [label for label in self._reader.labels.needed() if state_key(label) not in there]
        where = self._project.get("path_with_namespace", project)
        if not missing:
            return passed(f"every state of the settings has its label in {where}")
        near = [close for label in missing for close in _nearest(label, there)]
        hint = f"; {', '.join(near)} look alike" if near else ""
        return warned(
            f"{where} has no label {', '.join(missing)}{hint}; GitLab makes one when an issue is "
            "moved there, and no issue is in such a state before",
            "make these labels, or spell the states as the labels are",
        )

    async def filter(self) -> CheckResult:
        _, count = await self._api.first_issue(self._filter)
        if count == 0:
            return warned("no open issue passes tracker.query_filter", "see whether that is meant")
        return passed(f"{count if count is not None else 'many'} open issues pass the filter")


def _level(permissions: object) -> int | None:
    """Return the highest role that a token has in a project, None where it is not told."""
    roles = map(mapping_of, mapping_of(permissions).values())
    levels = [word_of(role.get("access_level")) for role in roles]
    return max((int(level) for level in levels if level.isdecimal()), default=None)


def _nearest(label: str, there: Mapping[str, str]) -> list[str]:
    return [there[key] for key in get_close_matches(state_key(label), there, n=1)]
