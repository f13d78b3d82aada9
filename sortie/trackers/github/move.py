"""An issue moved from one state to another: read, compare, write, read back.

GitHub compares nothing, so a person who moves the issue between our first and last request is found
out at the end. The new label is put on before the old ones are taken off, so that an issue is in
some state whenever we are cut off.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from sortie.model import Issue, TrackerError, TrackerErrorKind, same_state, state_key
from sortie.trackers.github.api import GitHubApi
from sortie.trackers.github.candidates import not_there
from sortie.trackers.github.items import Item, Repository
from sortie.trackers.github.label_states import LabelStates
from sortie.trackers.http.budget import Use
from sortie.trackers.http.errors import LostAnswer


class Mover:
    """Moves issues; it knows how the repository spells its labels."""

    def __init__(
        self, api: GitHubApi, repository: Repository, not_planned: Collection[str]
    ) -> None:
        self._api = api
        self._repository = repository
        self._not_planned = frozenset(map(state_key, not_planned))
        self._labels: dict[str, str] = {}

    async def move(self, issue: Issue, state: str, states: LabelStates) -> Item:
        """Move an issue and return it as it stands then. Raises TrackerError."""
        name = states.named(state)
        if name is None:
            raise TrackerError(
                TrackerErrorKind.INVALID,
                f"cannot move {issue.identifier} to {state!r}: the settings name no such state",
            )
        before = await self.read(issue.id)
        present = before.state(states)
        if not same_state(present, issue.state) and not same_state(present, name):
            raise _conflict(issue, present)
        try:
            written = await self._write(before, name, states)
        except LostAnswer:
            after = await self.read(issue.id)
            if _is_done(after, name, states):
                return after
            if after == before or not same_state(after.state(states), name):
                raise
            before, written = after, await self._write(after, name, states)  # the rest of it
        return await self._read_back(issue, before, name, (*written, states))

    async def read(self, number: str) -> Item:
        """Read an issue. Raises TrackerError (NOT_FOUND) where it is none, or a pull request."""
        data = await self._api.issue(number, Use.READ)
        item = None if data is None else self._repository.item(data)
        if item is None:
            raise not_there(self._repository, number)
        return item

    async def _write(
        self, before: Item, name: str, states: LabelStates
    ) -> tuple[tuple[str, ...], bool]:
        """Make the changes, and return the labels and whether it is closed as answers said."""
        labels = before.issue.labels
        if state_key(name) not in map(state_key, labels):
            spelled = await self._spelled(name)
            labels = await self._api.add_label(before.number, spelled)
            if state_key(name) not in map(state_key, labels):
                raise TrackerError(
                    TrackerErrorKind.CLOSED,
                    f"cannot label {before.issue.identifier} as {spelled!r}: GitHub dropped it "
                    "without a word, which it does where the credential may not write",
                )
        for other in states.others(labels, name):
            await self._api.remove_label(before.number, other)
        labels = tuple(label for label in labels if label not in states.others(labels, name))
        closed = states.is_terminal(name)
        if closed is not before.closed:
            await self._api.set_open(before.number, self._reason(name, closed=closed))
        return labels, closed

    def _reason(self, name: str, *, closed: bool) -> str:
        if not closed:
            return "reopened"
        return "not_planned" if state_key(name) in self._not_planned else "completed"

    async def _spelled(self, name: str) -> str:
        """Return a label as the repository spells it; one that it has not is made."""
        key = state_key(name)
        if key not in self._labels:
            self._labels = dict(await self._api.labels())
        if key not in self._labels:
            await self._api.create_label(name)
            self._labels[key] = name
        return self._labels[key]

    async def _read_back(
        self, issue: Issue, before: Item, name: str, written: tuple[Any, ...]
    ) -> Item:
        """Return the issue as it stands. Raises TrackerError (CONFLICT) where others moved it."""
        labels, closed, states = written
        after = await self.read(issue.id)
        if _is_done(after, name, states):
            return after
        if after == before:  # the read lags behind; what the changes were answered is later
            told = states.state_of(labels, closed=closed)
            if same_state(told, name):
                return before.changed(labels, closed=closed)
        raise _conflict(issue, after.state(states))


def _is_done(item: Item, name: str, states: LabelStates) -> bool:
    return same_state(item.state(states), name) and not states.others(item.issue.labels, name)


def _conflict(issue: Issue, present: str) -> TrackerError:
    return TrackerError(
        TrackerErrorKind.CONFLICT,
        f"{issue.identifier} is in {present}, no longer in {issue.state}",
    )
