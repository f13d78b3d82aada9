"""Moving an issue to another state: read, compare, write, read back.

GitLab makes every change that it is asked for, whatever the issue has become meanwhile. One request
changes labels and closes or reopens, so an issue is never between two states; what came of it is
read back, and an issue that somebody else has moved at the same moment is a CONFLICT.
"""

from __future__ import annotations

from typing import Any

from sortie.model import Issue, TrackerError, TrackerErrorKind, same_state
from sortie.trackers.gitlab.api import GitLabApi
from sortie.trackers.gitlab.issues import IssueKey, IssueReader, Item, is_moved, labels_of
from sortie.trackers.gitlab.labels import OPENED
from sortie.trackers.gitlab.project_labels import ProjectLabels
from sortie.trackers.http.errors import LostAnswer

TRIES = 3
"""How often a change is made that met another one being written ("Resource lock")."""


class IssueMoves:
    """Moves issues."""

    def __init__(self, api: GitLabApi, reader: IssueReader, labels: ProjectLabels) -> None:
        self._api = api
        self._reader = reader
        self._labels = labels

    async def move(self, key: IssueKey, issue: Issue, state: str) -> Item:
        """Move an issue and return it as it stands then. Raises TrackerError."""
        for last in (False,) * (TRIES - 1) + (True,):
            item = await self._compared(key, issue)
            change = await self._change(key, item, state)
            if not change:
                return item
            try:
                await self._api.change(key, change)
            except LostAnswer:
                moved = await self.present(key, issue.identifier)
                if not same_state(self._reader.issue(moved).state, state):
                    raise
                return moved
            except TrackerError as exc:
                if last or exc.kind is not TrackerErrorKind.UNAVAILABLE or exc.retry_after:
                    raise
                continue
            break
        return await self._read_back(key, issue, state)

    async def present(self, key: IssueKey, identifier: str) -> Item:
        """Return an issue as it is. Raises TrackerError (NOT_FOUND), or CLOSED: nothing is seen."""
        item = await self._api.one(key.project, key.iid)
        if item is None:
            await self._api.check_scope()
        if item is None or is_moved(item):
            gone = "was moved to another project" if item is not None else "is not there any more"
            raise TrackerError(TrackerErrorKind.NOT_FOUND, f"GitLab issue {identifier} {gone}")
        return item

    async def _compared(self, key: IssueKey, issue: Issue) -> Item:
        item = await self.present(key, issue.identifier)
        state = self._reader.issue(item).state
        if not same_state(state, issue.state):
            raise TrackerError(
                TrackerErrorKind.CONFLICT,
                f"{issue.identifier} is in {state}, no longer in {issue.state}",
            )
        return item

    async def _change(self, key: IssueKey, item: Item, state: str) -> dict[str, Any]:
        """Return what to ask for, empty where the issue is as it should be."""
        labels = labels_of(item)
        change = self._reader.labels.change(labels, state, is_open=item.get("state") == OPENED)
        asked: dict[str, Any] = {}
        if change.add:
            asked["add_labels"] = [
                await self._labels.spelled(key.project, label) for label in change.add
            ]
        if change.remove:
            asked["remove_labels"] = list(change.remove)
        if change.event is not None:
            asked["state_event"] = change.event
        return asked

    async def _read_back(self, key: IssueKey, issue: Issue, state: str) -> Item:
        item = await self.present(key, issue.identifier)
        found = self._reader.issue(item).state
        if same_state(found, state):
            return item
        if same_state(found, issue.state):
            raise TrackerError(
                TrackerErrorKind.PERMISSION,
                f"GitLab took the move of {issue.identifier} to {state} and did not make it; "
                "the token's role may not be allowed to change labels",
            )
        raise TrackerError(
            TrackerErrorKind.CONFLICT,
            f"{issue.identifier} was moved to {found} while it was moved to {state}",
        )
