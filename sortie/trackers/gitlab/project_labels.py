"""The labels that projects have, as they are spelled, and what became of those that are gone.

GitLab makes a label of every name that is put on an issue, also of one in another case: so names
are looked up before they are written. When somebody renames a label, every issue that had it looks
as if it had been taken off; nobody has moved these issues.
"""

from __future__ import annotations

import trio

from sortie.model import TrackerError, TrackerErrorKind, same_state, state_key
from sortie.trackers.gitlab.api import GitLabApi
from sortie.trackers.gitlab.issues import (
    OPENED,
    GitLabIssue,
    IssueKey,
    IssueReader,
    key_of,
    labels_of,
)

LABELS_LIFE = 60.0
"""Seconds for which the labels of a project are not asked for again."""


class ProjectLabels:
    """The labels of the projects that issues are in."""

    def __init__(self, api: GitLabApi) -> None:
        self._api = api
        self._known: dict[int, tuple[float, tuple[str, ...]]] = {}
        self._state_label: dict[IssueKey, str] = {}

    async def spelled(self, project: int, label: str) -> str:
        """Return a label as the project spells it; as it is where the project has none like it."""
        names = await self._names(project)
        if label in names:
            return label
        return next((name for name in names if same_state(name, label)), label)

    async def check(self, reader: IssueReader, item: GitLabIssue) -> None:
        """Take note of an issue's label. Raises TrackerError (INVALID) where it was renamed."""
        key, labels = key_of(item), labels_of(item)
        plain = reader.labels.plain(labels)
        mine = next((label for label in labels if label not in plain), None)
        former = self._state_label.get(key)
        if mine is not None:
            self._state_label[key] = mine
        elif former is not None and item.get("state") == OPENED:
            names = await self._names(key.project)
            if state_key(former) not in map(state_key, names):
                raise TrackerError(
                    TrackerErrorKind.INVALID,
                    f"GitLab issue {item.get('web_url')} had the label {former!r}, which its "
                    "project has no longer; if it was renamed, say so in tracker.active_states "
                    "or where else it is named",
                )
            del self._state_label[key]

    def forget(self) -> None:
        """Forget which labels issues had, as other ones stand for states now."""
        self._state_label.clear()

    async def _names(self, project: int) -> tuple[str, ...]:
        now = trio.current_time()
        asked, names = self._known.get(project, (float("-inf"), ()))
        if now - asked >= LABELS_LIFE:
            names = await self._api.labels(project)
            self._known[project] = now, names
        return names
