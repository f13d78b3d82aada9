"""Names of issues as the suite of trackers makes them up, for a tracker whose ids are its own."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import Any

from msgspec.structs import replace

from sortie.model import Blocker, Issue, IssueId, RateBudget
from sortie.model.checks import Check
from sortie.model.trust import Endorsement, Right
from sortie.trackers import (
    IssuesRead,
    Overview,
    TellsOfPeople,
    Tracker,
    TrackerStates,
    UnreadableIssue,
)


@dataclass(slots=True)
class Aliases:
    """Which issue of the suite is which of the tracker's, by id and by identifier.

    ``untold`` are fields that the tracker fills in whatever the suite says; they are left out.
    ``label_states`` are those states of the suite that are labels in this tracker; it is told of
    them, and the suite is not told of these labels.
    """

    ids: dict[str, str] = field(default_factory=dict)  # the suite's to the tracker's
    identifiers: dict[str, str] = field(default_factory=dict)
    untold: frozenset[str] = frozenset()
    label_states: tuple[str, ...] = ()

    def name(self, issue: Issue, issue_id: str, identifier: str) -> None:
        """Note what an issue of the suite is called by the tracker."""
        self.ids[issue.id] = issue_id
        self.identifiers[issue.identifier] = identifier

    def id_of(self, issue_id: str) -> IssueId:
        """Return the tracker's id; an unknown one stays as it is."""
        return IssueId(self.ids.get(issue_id, issue_id))

    def theirs(self, issue: Issue) -> Issue:
        """Return an issue of the suite with the tracker's names."""
        identifier = self.identifiers.get(issue.identifier, issue.identifier)
        return replace(issue, id=self.id_of(issue.id), identifier=identifier)

    def ours(self, issue: Issue) -> Issue:
        """Return an issue of the tracker with the suite's names."""
        left_out: dict[str, Any] = dict.fromkeys(self.untold)
        return replace(
            replace(issue, **left_out),
            id=self.our_id(issue.id),
            identifier=_found(self.identifiers, issue.identifier),
            labels=tuple(label for label in issue.labels if label not in self.label_states),
            parent=issue.parent and _found(self.identifiers, issue.parent),
            blocked_by=tuple(map(self._our_blocker, issue.blocked_by)),
        )

    def our_id(self, issue_id: str) -> IssueId:
        """Return the suite's id."""
        return IssueId(_found(self.ids, issue_id))

    def _our_blocker(self, blocker: Blocker) -> Blocker:
        return replace(
            blocker,
            identifier=_found(self.identifiers, blocker.identifier),
            id=blocker.id and self.our_id(blocker.id),
        )


def labelled(issue: Issue, label_states: Collection[str]) -> tuple[str, list[str]]:
    """Return the tracker's own state of an issue of the suite, and all its labels."""
    if issue.state in label_states:
        return "Todo", [*issue.labels, issue.state]
    return issue.state, list(issue.labels)


def _found(names: dict[str, str], theirs: str) -> str:
    return next((ours for ours, name in names.items() if name == theirs), theirs)


class AliasedTracker(Tracker):
    """A tracker as the suite asks it, with the names that the suite makes up."""

    def __init__(self, tracker: Tracker, aliases: Aliases) -> None:
        self._tracker = tracker
        self._aliases = aliases

    def identifier_of(self, name: str) -> str:
        """Return what the tracker calls the issue that the suite calls so."""
        return self._aliases.identifiers[name]

    async def fetch_candidates(self, states: Collection[str]) -> Sequence[Issue]:
        """See Tracker."""
        return [self._aliases.ours(i) for i in await self._tracker.fetch_candidates(states)]

    async def fetch_by_ids(self, ids: Collection[IssueId]) -> IssuesRead:
        """See Tracker."""
        read = await self._tracker.fetch_by_ids([self._aliases.id_of(i) for i in ids])
        return IssuesRead(
            issues=tuple(map(self._aliases.ours, read.issues)),
            failed={self._aliases.our_id(i): error for i, error in read.failed.items()},
        )

    async def find(self, name: str) -> Issue | None:
        """See Tracker."""
        aliases = self._aliases
        found = await self._tracker.find(aliases.identifiers.get(name) or aliases.id_of(name))
        return None if found is None else aliases.ours(found)

    async def transition(self, issue: Issue, state: str) -> Issue:
        """See Tracker."""
        return self._aliases.ours(
            await self._tracker.transition(self._aliases.theirs(issue), state)
        )

    async def complete_move(self, issue: Issue) -> None:
        """See Tracker."""
        await self._tracker.complete_move(self._aliases.theirs(issue))

    async def comment(
        self, issue: Issue, body: str, key: str | None = None, *, again: bool = False
    ) -> None:
        """See Tracker."""
        await self._tracker.comment(self._aliases.theirs(issue), body, key, again=again)

    async def may(self, author_id: str, right: Right) -> bool:
        """See TellsOfPeople."""
        assert isinstance(self._tracker, TellsOfPeople)
        return await self._tracker.may(author_id, right)

    async def endorsement(self, issue: Issue, label: str) -> Endorsement | None:
        """See TellsOfPeople."""
        assert isinstance(self._tracker, TellsOfPeople)
        return await self._tracker.endorsement(self._aliases.theirs(issue), label)

    async def changed(self) -> None:
        """See Tracker."""
        await self._tracker.changed()

    def configure(self, states: TrackerStates) -> None:
        """See Tracker."""
        self._tracker.configure(replace(states, labels=self._aliases.label_states))

    def overview(self) -> Overview:
        """See Tracker."""
        overview = self._tracker.overview()
        return Overview(
            issues=tuple(map(self._aliases.ours, overview.issues)),
            unreadable=tuple(
                UnreadableIssue(
                    message=it.message,
                    names=frozenset(_found(self._aliases.identifiers, n) for n in it.names),
                )
                for it in overview.unreadable
            ),
        )

    def budgets(self) -> Sequence[RateBudget]:
        """See Tracker."""
        return self._tracker.budgets()

    def list_pause(self) -> float:
        """See Tracker."""
        return self._tracker.list_pause()

    def checks(self) -> Sequence[Check]:
        """See Tracker."""
        return self._tracker.checks()
