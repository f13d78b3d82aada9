"""The port to issue trackers. Nobody imports an adapter by name: ADAPTERS finds it by its kind."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from pydantic import BaseModel

from sortie.adapters import Adapters
from sortie.model import Issue, IssueId, Sighting, TrackerError


@dataclass(frozen=True, slots=True, kw_only=True)
class IssuesRead:
    """The answer to a re-read: an issue that was asked for and is in neither field is not there.

    ``failed`` holds the issues that exist but could not be read.
    """

    issues: tuple[Issue, ...] = ()
    failed: Mapping[IssueId, TrackerError] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Unreadable:
    """Something in the tracker that is meant as an issue and cannot be given as one.

    ``message`` begins with the place; ``names`` are those by which people may ask for it.
    """

    message: str
    names: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class Overview:
    """What the last answers told of issues, whatever their states; empty before the first."""

    issues: tuple[Issue, ...] = ()
    unreadable: tuple[Unreadable, ...] = ()


class Tracker(Protocol):
    """An issue tracker. Every request raises TrackerError and nothing else that is expected."""

    async def fetch_candidates(self, states: Collection[str]) -> Sequence[Issue]:
        """Return the issues in these states, with their blockers' states, in any order."""
        ...

    async def fetch_by_ids(self, ids: Collection[IssueId]) -> IssuesRead:
        """Read these issues again, whatever their states."""
        ...

    async def fetch_by_states(self, states: Collection[str]) -> Sequence[Issue]:
        """Return all issues in these states."""
        ...

    async def transition(self, issue: Issue, state: str) -> Issue:
        """Move an issue to a state and return it as it stands then.

        Raises TrackerError (CONFLICT) where it is no longer in ``issue.state``.
        """
        ...

    async def comment(self, issue: Issue, body: str) -> None:
        """Add a comment to an issue."""
        ...

    def overview(self) -> Overview:
        """Return at once what is known of all issues, those included that no list gives.

        A tracker that is not told of them all knows those that it came across.
        """
        ...


class Sightings(Protocol):
    """A memory of when issues were first seen, for trackers that keep no times."""

    async def sight(self, digests: Mapping[str, str]) -> Mapping[str, Sighting]:
        """Note the present digest of each issue (by id) and return what is known of each."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class TrackerContext:
    """What an adapter is made from; relative paths in ``settings`` are already absolute.

    ``settings`` is the adapter's own block; ``endpoint``, ``api_key``, ``project`` and
    ``query_filter`` come from ``tracker``.
    """

    settings: BaseModel
    directory: Path  # of WORKFLOW.md
    sightings: Sightings
    endpoint: str | None = None
    api_key: str | None = field(default=None, repr=False)
    project: str | None = None
    query_filter: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TrackerAdapter:
    """What an adapter's folder offers; ``block`` is the schema of its block, ``block_name``."""

    kind: str
    block_name: str
    block: type[BaseModel]
    create: Callable[[TrackerContext], Tracker]


ADAPTERS = Adapters(__name__, TrackerAdapter)
