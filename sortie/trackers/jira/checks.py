"""What ``sortie doctor`` asks of a Jira, one thing after the other; nothing is changed."""

from __future__ import annotations

from collections.abc import Sequence

from sortie.http.checks import budget_check, clock_check
from sortie.http.client import HttpClient
from sortie.http.json_values import list_of, mapping_of, word_of
from sortie.http.requests import HttpRequest
from sortie.model import TrackerError, TrackerErrorKind, state_key
from sortie.model.checks import Check, CheckResult, failed, passed, warned
from sortie.trackers.http.added_states import AddedStates
from sortie.trackers.jira import jql
from sortie.trackers.jira.site import SiteMemory, unknown_states

_NEEDED = {
    "BROWSE_PROJECTS": "Browse projects",
    "TRANSITION_ISSUES": "Transition issues",
    "ADD_COMMENTS": "Add comments",
}


_NEEDED_FOR_LABELS = {"EDIT_ISSUES": "Edit issues"}


class JiraChecks:
    """The checks of one project."""

    def __init__(
        self,
        client: HttpClient,
        memory: SiteMemory,
        added: AddedStates,
        query_filter: str | None,
        blocked_by: str,
    ) -> None:
        self._client = client
        self._memory = memory
        self._added = added
        self._filter = query_filter
        self._blocked_by = blocked_by

    def checks(self) -> Sequence[Check]:
        """Return them in the order in which faults have to be mended."""
        address = (
            "look at tracker.endpoint: the address of the site, or of the cloud's gateway with the "
            "site's id, and whether it can be reached from here"
        )
        key = (
            "look at tracker.api_key: email:token for the cloud, a personal access token or "
            "user:password for a data center; a token of the cloud lives a year"
        )
        project = "look at tracker.project, and whether the account may browse it"
        query = "mend tracker.query_filter; it is a condition of JQL without ORDER BY"
        return (
            Check(name="reach", ask=self._reach, remedy=address),
            clock_check(self._client),
            Check(name="credential", ask=self._credential, needs=("reach",), remedy=key),
            Check(name="project", ask=self._project, needs=("credential",), remedy=project),
            Check(name="write", ask=self._write, needs=("project",)),
            Check(name="states", ask=self._check_states, needs=("project",)),
            Check(name="links", ask=self._links, needs=("credential",)),
            Check(name="filter", ask=self._check_filter, needs=("project",), remedy=query),
            budget_check(self._client, "credential"),
        )

    async def _reach(self) -> CheckResult:
        server = await self._memory.server()
        version = f" {server.version}" if server.version else ""
        return passed(f"{server.edition.name}{version} answers; people see it at {server.browse}")

    async def _credential(self) -> CheckResult:
        me = await self._memory.me((await self._memory.server()).edition)
        return passed(f"the key belongs to {me.name or me.id}")

    async def _project(self) -> CheckResult:
        project = (await self._memory.get()).project
        return passed(f"project {project.key} is {project.name}")

    async def _write(self) -> CheckResult:
        site = await self._memory.get()
        params, needed = [("projectKey", site.project.key)], dict(_NEEDED)
        if self._added:
            needed |= _NEEDED_FOR_LABELS
        if site.server.edition.api.endswith("/3"):  # which wants to be told, and the other does not
            params.append(("permissions", ",".join(needed)))
        request = HttpRequest(
            path=f"{site.edition.api}/mypermissions",
            what="cannot ask what the key may do",
            params=params,
        )
        told = mapping_of(mapping_of((await self._client.ask(request)).json()).get("permissions"))
        if missing := [
            name
            for key, name in needed.items()
            if mapping_of(told.get(key)).get("havePermission") is False
        ]:
            return failed(
                f"the account may not {' and not '.join(missing)} in {site.project.key}",
                "have an administrator of the project give it these permissions",
            )
        return passed("the account may move issues and comment on them")

    async def _check_states(self) -> CheckResult:
        site = await self._memory.get()
        there = await self._memory.states(site)
        if both := self._added.in_both(there):
            return failed(
                f"tracker.label_states: {' and '.join(both)} is a status of"
                f" {site.project.key} itself",
                "take it out of tracker.label_states: a state is a label or a status",
            )
        if unknown := unknown_states(self._added.own(self._added.states.named), there):
            return failed(
                f"{site.project.key} has no status {' and no '.join(unknown)}",
                f"name some of its own in the workflow file: {', '.join(there)}",
            )
        sentence = f"all states are statuses of {site.project.key}: {', '.join(there)}"
        if self._added:
            sentence += f"; or labels: {', '.join(self._added.names)}"
        return passed(sentence)

    async def _links(self) -> CheckResult:
        site = await self._memory.get()
        request = HttpRequest(
            path=f"{site.edition.api}/issueLinkType",
            what="cannot ask for the types of links",
            wanted=frozenset({404}),
        )
        answer = await self._client.ask(request)
        if answer.status == 404:
            return passed("issues cannot be linked in this Jira, so that none is blocked")
        types = map(mapping_of, list_of(mapping_of(answer.json()).get("issueLinkTypes")))
        names = [name for it in types if (name := word_of(it.get("inward")))]
        if state_key(self._blocked_by) not in map(state_key, names):
            return warned(
                f'no link is called "{self._blocked_by}", so that no issue is blocked',
                f"set jira.blocked_by to one of: {', '.join(names)}",
            )
        return passed(f'an issue waits for those that it "{self._blocked_by}"')

    async def _check_filter(self) -> CheckResult:
        site = await self._memory.get()
        if self._filter is None:
            return passed("there is no filter")
        base = f"project = {jql.quoted(site.project.key)}"
        query = jql.query(base, jql.enclosed(self._filter))
        if not site.edition.api.endswith("/3"):
            await self._search_one(site.edition.api, query)
            return passed("the filter is understood")
        request = HttpRequest(
            method="POST",
            path=f"{site.edition.api}/jql/parse",
            what="cannot have the filter checked",
            params=[("validation", "strict")],
            body={"queries": [query]},
        )
        told = mapping_of((await self._client.ask(request)).json())
        errors = [e for q in map(mapping_of, list_of(told.get("queries"))) for e in _errors_of(q)]
        if errors:
            raise TrackerError(TrackerErrorKind.INVALID, f"tracker.query_filter: {errors[0]}")
        return passed("the filter is understood")

    async def _search_one(self, api: str, query: str) -> None:
        body = {"jql": query, "fields": ["summary"], "maxResults": 1, "startAt": 0}
        what = "cannot search with tracker.query_filter"
        await self._client.ask(
            HttpRequest(method="POST", path=f"{api}/search", what=what, body=body)
        )


def _errors_of(query: object) -> list[str]:
    """Return what is wrong with a query that was checked."""
    return [word_of(error) for error in list_of(mapping_of(query).get("errors"))]
