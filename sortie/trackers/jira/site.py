"""What one has to know of a Jira before anything else: which it is, who we are, the project."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

import trio
from msgspec import Struct

from sortie.http.client import HttpClient, segment
from sortie.http.json_values import list_of, mapping_of, word_of
from sortie.http.requests import HttpRequest
from sortie.model import TrackerError, TrackerErrorKind, state_key
from sortie.trackers.http.added_states import AddedStates
from sortie.trackers.jira.editions import Cloud, DataCenter, Edition
from sortie.trackers.jira.people import Person, person_of
from sortie.trackers.jira.settings import is_cloud_host


class JiraServer(Struct, frozen=True, kw_only=True):
    """Which Jira it is; ``browse`` is its address for people, without a slash at its end."""

    edition: Edition
    browse: str
    version: str


class JiraProject(Struct, frozen=True, kw_only=True):
    """The project; its id stays when its key changes."""

    id: str
    key: str
    name: str


class Site(Struct, frozen=True, kw_only=True):
    """All of it."""

    server: JiraServer
    me: Person
    project: JiraProject

    @property
    def edition(self) -> Edition:
        """The kind of Jira."""
        return self.server.edition


class SiteMemory:
    """What was asked of a Jira once.

    Searches, issues and comments may be asked for by nobody in particular, to whom a project can
    look empty: so an answer to "who am I" comes before everything else.
    """

    def __init__(self, client: HttpClient, deployment: str, project: str) -> None:
        self._client = client
        self._deployment = deployment
        self._project = project
        self._asking = trio.Lock()
        self._known: Site | None = None
        self._labels_checked: AddedStates | None = None

    async def get(self) -> Site:
        """Return the site. Raises TrackerError."""
        async with self._asking:
            if self._known is None:
                server = await self.server()
                me = await self.me(server.edition)
                self._known = Site(server=server, me=me, project=await self.project(server.edition))
            return self._known

    async def check(self) -> None:
        """Raise TrackerError (CLOSED) where the key or the project is not what it was.

        Asked before it is believed that many issues are gone.
        """
        site = await self.get()
        await self.me(site.edition)
        await self.project(site.edition)

    async def server(self) -> JiraServer:
        """Ask which Jira it is."""
        edition = self._guess()
        path = "/rest/api/2" if edition is None else edition.api  # both editions have that one
        told = await self._record(f"{path}/serverInfo", "cannot ask which Jira it is")
        if edition is None:
            kind = state_key(word_of(told.get("deploymentType")))
            edition = Cloud() if kind == "cloud" else DataCenter()
        browse = word_of(told.get("displayUrl")) or word_of(told.get("baseUrl"))
        return JiraServer(
            edition=edition,
            browse=(browse or str(self._client.endpoint)).rstrip("/"),
            version=word_of(told.get("version")),
        )

    def _guess(self) -> Edition | None:
        """Return the edition where it needs not be asked for."""
        if self._deployment == "cloud" or is_cloud_host(str(self._client.endpoint)):
            return Cloud()
        return DataCenter() if self._deployment == "data-center" else None

    async def me(self, edition: Edition) -> Person:
        """Ask who we are."""
        told = await self._record(f"{edition.api}/myself", "cannot ask who the key belongs to")
        return person_of(told)

    async def project(self, edition: Edition) -> JiraProject:
        """Ask for the project."""
        path = f"{edition.api}/project/{segment(self._project)}"
        what = f"cannot find project {self._project}"
        request = HttpRequest(path=path, what=what, wanted=frozenset({404}))
        answer = await self._client.ask(request)
        if answer.status == 404:
            told = "there is none, or the key's account may not browse it"
            raise self._client.error(TrackerErrorKind.CLOSED, request, told)
        told_of = mapping_of(answer.json())
        project = JiraProject(
            id=word_of(told_of.get("id")),
            key=word_of(told_of.get("key")),
            name=word_of(told_of.get("name")),
        )
        if not project.id or not project.key:
            raise self._client.error(TrackerErrorKind.UNAVAILABLE, request, "it has no id or key")
        return project

    async def states(self, site: Site) -> tuple[str, ...]:
        """Ask for the names of the project's statuses, of all types of issues."""
        path = f"{site.edition.api}/project/{segment(site.project.id)}/statuses"
        what = f"cannot ask for the statuses of {site.project.key}"
        answer = await self._client.ask(HttpRequest(path=path, what=what, list_at=()))
        types = (mapping_of(it) for it in list_of(answer.json()))
        every = (s for it in types for s in list_of(it.get("statuses")))
        names = (word_of(mapping_of(status).get("name")) for status in every)
        return tuple(dict.fromkeys(filter(None, names)))

    async def check_states(self, site: Site, names: Collection[str]) -> None:
        """Raise TrackerError (INVALID) where the project has no status of one of these names.

        A search for a status that was renamed may find nothing without a word.
        """
        there = await self.states(site)
        if unknown := unknown_states(names, there):
            raise TrackerError(
                TrackerErrorKind.INVALID,
                f"project {site.project.key} has no status {' and no '.join(unknown)}; "
                f"it has {', '.join(there) or 'none'}: mend tracker.active_states",
            )

    async def check_labels(self, site: Site, added: AddedStates) -> None:
        """Raise TrackerError (INVALID) where a state that is to be a label is a status as well.

        Of the same states it is asked until none is.
        """
        if not added or added is self._labels_checked:
            return
        if both := added.in_both(await self.states(site)):
            raise TrackerError(
                TrackerErrorKind.INVALID,
                f"tracker.label_states: {' and '.join(both)} is a status of {site.project.key} "
                "itself; a state is one or the other",
            )
        self._labels_checked = added

    async def _record(self, path: str, what: str) -> Mapping[str, Any]:
        request = HttpRequest(path=path, what=what)
        told = (await self._client.ask(request)).json()
        if not isinstance(told, dict):
            raise self._client.error(TrackerErrorKind.UNAVAILABLE, request, "it is no Jira")
        return told


def unknown_states(names: Collection[str], there: Collection[str]) -> list[str]:
    """Return those of the names, quoted, that are none of those that are there."""
    known = {state_key(name) for name in there}
    return [f'"{name}"' for name in names if state_key(name) not in known]
