"""What the checks of trackers need: a tracker that is open, and the world's hands on its issues."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal, Protocol, runtime_checkable

from msgspec.structs import replace

from sortie.model import Issue, IssueId, Sighting, TrackerError, TrackerErrorKind
from sortie.model.trust import Right
from sortie.testing.checks import Checks, NotKept, NotTried, require
from sortie.trackers import Capability, Tracker, TrackerAdapter, TrackerContext, TrackerStates

THEN = datetime(2026, 5, 1, 12, tzinfo=UTC)
"""When the issues of the checks were made and changed."""

STATES = TrackerStates(
    active=("Todo", "In Progress"),
    terminal=("Done", "Dropped"),
    in_progress="In Progress",
    handoff="Review",
)
"""The states with which a rig opens its tracker."""

OPTIONAL_FIELDS = frozenset(
    {"priority", "url", "assignee", "issue_type", "branch_name", "parent", "updated_at"}
)
"""The fields of an issue that a tracker may not have; every tracker has the others."""


class Rig(Protocol):
    """A tracker opened with STATES and no guard around it, and the world's hands on its issues.

    ``keeps`` are those of OPTIONAL_FIELDS that the tracker has.
    """

    @property
    def tracker(self) -> Tracker:
        """The tracker."""

    capabilities: frozenset[Capability]
    keeps: frozenset[str]

    def put(self, issue: Issue) -> None:
        """Add an issue, or replace it, as a person would."""

    def lose(self, issue_id: str) -> None:
        """Remove an issue."""

    def spoil(self, issue_id: str) -> None:
        """Change an issue so that it cannot be read."""

    def fail(self) -> None:
        """Have every request fail, until ``recover``."""

    def recover(self) -> None:
        """End what ``fail`` or ``limit`` began."""

    def limit(self, seconds: int) -> None:
        """Have the tracker refuse every request, and ask for a pause of these seconds.

        Only called where RATE_LIMITS is declared.
        """


@runtime_checkable
class ConvertsTexts(Protocol):
    """A rig of a tracker that keeps descriptions and comments in a format of its own."""

    def text(self, text: str) -> str:
        """Return Markdown as the tracker gives it back; it means the same."""


@runtime_checkable
class LosesAnswers(Protocol):
    """A rig of a tracker over a network, on which the answer to a change can be lost."""

    def lose_answer(self, change: Literal["move", "comment"]) -> None:
        """Have the next change of this kind be made, and its answer not arrive."""


@runtime_checkable
class RulesPeople(Protocol):
    """A rig of a tracker that tells of people, who are named as authors of issues are.

    ``rights`` are those that it can tell of. ``tells_edits`` is False where the tracker does not
    tell who has changed a description.
    """

    rights: frozenset[Right]
    tells_edits: bool

    def grant(self, author: str, right: Right | None) -> None:
        """Give somebody a right, or take all."""

    def refuse_people(self) -> None:
        """Have the tracker tell the key nothing of people."""

    def label(self, issue_id: str, name: str, by: str, at: datetime, *, on: bool = True) -> None:
        """Have somebody put a label on an issue, or take it off, without a further change."""

    def edit(self, issue_id: str, what: str, by: str, at: datetime) -> None:
        """Have somebody change the ``title`` or the ``description``, without a further change."""


OpenRig = Callable[[Path], AbstractAsyncContextManager[Rig]]
"""Opens a rig, without issues, for one check; the path is an empty directory."""

CHECKS: Checks[Rig] = Checks()
"""All checks of trackers."""

check = CHECKS.check


def context_of(
    adapter: TrackerAdapter, block: Mapping[str, Any], directory: Path, **keys: Any
) -> TrackerContext:
    """Return what a rig opens an adapter with; ``keys`` are those of ``tracker``."""
    settings = adapter.block.model_validate(dict(block))
    given = {"sightings": _SightedThen(), "states": STATES, **adapter.optional, **keys}
    return TrackerContext(settings=settings, directory=directory, **given)


class _SightedThen:
    async def sight(self, digests: Mapping[str, str]) -> Mapping[str, Sighting]:
        return {issue_id: Sighting(first_seen=THEN, changed_at=THEN) for issue_id in digests}


def make_issue(issue_id: str, state: str = "Todo", **changes: object) -> Issue:
    """Return an issue of the checks."""
    plain = Issue(
        id=IssueId(issue_id),
        identifier=issue_id,
        title=f"Title of {issue_id}",
        state=state,
        author="ann",
        created_at=THEN,
        updated_at=THEN,
    )
    return replace(plain, **changes)


def needs(rig: Rig, *capabilities: Capability) -> None:
    """Raise NotTried where a tracker does not declare what a check is about."""
    if lacking := sorted(set(capabilities) - rig.capabilities):
        raise NotTried(f"it does not declare {', '.join(lacking)}")


def as_kept(rig: Rig, issue: Issue) -> Issue:
    """Return an issue without the fields that the tracker does not keep, texts as it gives them."""
    absent: dict[str, Any] = dict.fromkeys(OPTIONAL_FIELDS - rig.keeps, None)
    comments = tuple(replace(c, body=text_of(rig, c.body)) for c in issue.comments)
    return replace(issue, description=text_of(rig, issue.description), comments=comments, **absent)


def as_listed(rig: Rig, issue: Issue) -> Issue:
    """Return an issue as lists give it."""
    comments = issue.comments if Capability.LIST_COMMENTS in rig.capabilities else ()
    return replace(as_kept(rig, issue), comments=comments)


def without_ids(issue: Issue) -> Issue:
    """Return an issue without the ids of authors, which are the tracker's own."""
    comments = tuple(replace(comment, author_id=None) for comment in issue.comments)
    return replace(issue, author_id=None, comments=comments)


def text_of(rig: Rig, text: str) -> str:
    """Return a text as the tracker gives it back."""
    return rig.text(text) if isinstance(rig, ConvertsTexts) else text


async def read_one(rig: Rig, issue_id: str) -> Issue:
    """Read an issue. Raises NotKept where it is not there, or cannot be read."""
    read = await rig.tracker.fetch_by_ids([IssueId(issue_id)])
    require(len(read.issues) == 1, f"issue {issue_id} was read as {read!r:.300}")
    return read.issues[0]


async def refusal(request: Awaitable[object], what: str, *kinds: TrackerErrorKind) -> TrackerError:
    """Return the error of a request. Raises NotKept where there is none, or one of another kind."""
    try:
        answer = await request
    except TrackerError as error:
        require(error.kind in kinds, f"{what} was refused as {error.kind}: {error!s:.300}")
        return error
    raise NotKept(f"{what} was not refused, but answered {answer!r:.300}")


async def each_refused(rig: Rig, *kinds: TrackerErrorKind) -> list[TrackerError]:
    """Make every request, for the issue A-1, and return the errors of all."""
    tracker, issue = rig.tracker, make_issue("A-1")
    return [
        await refusal(tracker.fetch_candidates(["todo"]), "fetch_candidates", *kinds),
        await refusal(tracker.find("A-1"), "find", *kinds),
        await refusal(tracker.fetch_by_ids([issue.id]), "fetch_by_ids", *kinds),
        await refusal(tracker.transition(issue, "Done"), "transition", *kinds),
        await refusal(tracker.comment(issue, "hello"), "comment", *kinds),
    ]
