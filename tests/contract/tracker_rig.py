"""What the suite of trackers needs to know of each: how it is opened, and the world's hands on it.

A tracker of kind ``x`` has a module ``tests.trackers.x.rig`` with ``RIGS``: by name, each way in
which it is to be tried.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import replace
from datetime import UTC, datetime
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from sortie.model import Issue, IssueId, Sighting
from sortie.trackers import Capability, Tracker, TrackerAdapter, TrackerContext, TrackerStates

THEN = datetime(2026, 5, 1, 12, tzinfo=UTC)

STATES = TrackerStates(
    active=("Todo", "In Progress"),
    terminal=("Done", "Dropped"),
    in_progress="In Progress",
    handoff="Review",
)

OPTIONAL_FIELDS = frozenset(
    {"priority", "url", "assignee", "issue_type", "branch_name", "parent", "updated_at"}
)
"""The fields of an issue that a tracker may not have; the others are asked for."""


class Rig(Protocol):
    """A tracker opened with STATES, and the world's hands on its issues.

    ``keeps`` are those of OPTIONAL_FIELDS that it has.
    """

    @property
    def tracker(self) -> Tracker:
        """The tracker, guarded by nobody."""

    capabilities: frozenset[Capability]
    keeps: frozenset[str]

    def put(self, issue: Issue) -> None:
        """Add an issue, or put it in another's place."""

    def lose(self, issue_id: str) -> None:
        """Remove an issue."""

    def spoil(self, issue_id: str) -> None:
        """Make an issue one that cannot be read."""

    def fail(self) -> None:
        """Have every request fail, until ``recover``."""

    def recover(self) -> None:
        """End what ``fail`` or ``limit`` began."""

    def limit(self, seconds: int) -> None:
        """Have the tracker refuse every request, and ask to be left alone for these seconds.

        Only called where RATE_LIMITS is declared.
        """


@runtime_checkable
class ConvertsTexts(Protocol):
    """A rig of a tracker that keeps descriptions and comments in a format of its own."""

    def text(self, text: str) -> str:
        """Return Markdown as it comes back from the tracker: it means the same."""


def told_text(rig: Rig, text: str) -> str:
    """Return a text as the tracker gives it back."""
    return rig.text(text) if isinstance(rig, ConvertsTexts) else text


OpenRig = Callable[[Path], AbstractAsyncContextManager[Rig]]


def rigs_of(kind: str) -> Mapping[str, OpenRig]:
    """Return the rigs of a kind by name; none where nobody has written its module."""
    package = f"tests.trackers.{kind.replace('-', '_')}"
    if find_spec(package) is None or find_spec(f"{package}.rig") is None:
        return {}
    rigs: Mapping[str, OpenRig] = import_module(f"{package}.rig").RIGS
    return rigs


def context_of(
    adapter: TrackerAdapter, block: Mapping[str, Any], directory: Path, **keys: Any
) -> TrackerContext:
    """Return what an adapter is opened with; ``keys`` are those of ``tracker``."""
    settings = adapter.block.model_validate(dict(block))
    given = {"sightings": _SightedThen(), "states": STATES, **adapter.optional, **keys}
    return TrackerContext(settings=settings, directory=directory, **given)


def make(issue_id: str, state: str = "Todo", **changes: object) -> Issue:
    """Return an issue."""
    plain = Issue(
        id=IssueId(issue_id),
        identifier=issue_id,
        title=f"Title of {issue_id}",
        state=state,
        created_at=THEN,
        updated_at=THEN,
    )
    return replace(plain, **changes)  # type: ignore[arg-type]


class _SightedThen:
    async def sight(self, digests: Mapping[str, str]) -> Mapping[str, Sighting]:
        return {issue_id: Sighting(first_seen=THEN, changed_at=THEN) for issue_id in digests}
