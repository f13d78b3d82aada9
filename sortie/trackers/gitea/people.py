"""What Gitea tells of people: who may push, and who has labelled and renamed an issue.

It tells of no change of a description.
"""

from __future__ import annotations

from sortie.http.client import HttpClient
from sortie.http.json_values import mapping_of, time_of, word_of
from sortie.http.permissions import is_collaborator, is_member, may_push
from sortie.model import Issue, TrackerError, TrackerErrorKind, state_key
from sortie.model.trust import Edit, Endorsement, Right, login_key
from sortie.trackers.gitea.api import GiteaApi


class GiteaPeople:
    """People of one repository."""

    def __init__(self, client: HttpClient, api: GiteaApi, name: str) -> None:
        self._client = client
        self._api = api
        self._owner = name.partition("/")[0]

    async def may(self, author_id: str, right: Right) -> bool:
        """Ask for somebody's permission, or whether they belong to repository or organisation."""
        if right is Right.WRITE:
            return await may_push(self._client, self._api.root, author_id)
        if login_key(author_id) == login_key(self._owner):
            return True
        if await is_collaborator(self._client, self._api.root, author_id):
            return True
        return await is_member(self._client, self._owner, author_id)

    async def endorsement(self, issue: Issue, label: str) -> Endorsement | None:
        """Read the timeline of an issue."""
        what = f"cannot see who has labelled {issue.identifier}"
        events = await self._api.pages(f"{self._api.path(issue.id)}/timeline", what)
        found, edits = None, []
        try:
            for event in map(mapping_of, events):
                by = word_of(mapping_of(event.get("user")).get("login")) or None
                name = word_of(mapping_of(event.get("label")).get("name"))
                if event.get("type") == "change_title":
                    at = time_of(event.get("created_at"), "created_at")
                    edits.append(Edit(by=by, at=at))
                elif event.get("type") == "label" and state_key(name) == state_key(label):
                    is_set = word_of(event.get("body")) == "1"
                    at = time_of(event.get("created_at"), "created_at")
                    found = (by, at) if is_set else None
        except ValueError as exc:
            raise TrackerError(TrackerErrorKind.UNAVAILABLE, f"{what}: {exc}") from exc
        if found is None:
            return None
        return Endorsement(by=found[0], at=found[1], edits=tuple(edits), tells_edits=False)
