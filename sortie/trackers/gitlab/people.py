"""What GitLab tells of people: their level of access, and who has labelled and edited an issue."""

from __future__ import annotations

from sortie.http.client import HttpClient
from sortie.http.json_values import mapping_of, time_of, word_of
from sortie.http.permissions import DEVELOPER, GUEST, access_level
from sortie.model import Issue, TrackerError, TrackerErrorKind, state_key
from sortie.model.trust import Edit, Endorsement, Right
from sortie.trackers.gitlab.api import GitLabApi
from sortie.trackers.gitlab.issues import GitLabIssue, key_of_id

_EDITS = ("changed title", "changed the description", "marked the ", "promoted ")
"""How the notes begin that GitLab itself writes of a change of title, description or a task."""


class GitLabPeople:
    """Members of the project or group that is worked on."""

    def __init__(self, client: HttpClient, api: GitLabApi) -> None:
        self._client = client
        self._api = api

    async def may(self, author_id: str, right: Right) -> bool:
        """Ask for the level of a member, also of a group above."""
        least = DEVELOPER if right is Right.WRITE else GUEST
        return await access_level(self._client, self._api.scope.path, author_id) >= least

    async def endorsement(self, issue: Issue, label: str) -> Endorsement | None:
        """Read the events of labels, and GitLab's own notes of what was changed."""
        key = key_of_id(issue.id)
        if key is None:
            return None
        found: GitLabIssue | None = None
        for event in await self._api.label_events(key):
            name = word_of(mapping_of(event.get("label")).get("name"))
            if state_key(name) == state_key(label):
                found = event
        if found is None or found.get("action") != "add":
            return None
        notes = await self._api.notes(key, with_system=True)
        changes = [n for n in notes if n.get("system") is True and _is_edit(word_of(n.get("body")))]
        try:
            return Endorsement(
                by=_who(found, "user"),
                at=time_of(found.get("created_at"), "created_at"),
                edits=tuple(
                    Edit(by=_who(n, "author"), at=time_of(n.get("created_at"), "created_at"))
                    for n in changes
                ),
            )
        except ValueError as exc:
            what = f"cannot see who has labelled {issue.identifier}: {exc}"
            raise TrackerError(TrackerErrorKind.UNAVAILABLE, what) from exc


def _is_edit(body: str) -> bool:
    return body.startswith(_EDITS)


def _who(told: GitLabIssue, key: str) -> str | None:
    return word_of(mapping_of(told.get(key)).get("username")) or None
