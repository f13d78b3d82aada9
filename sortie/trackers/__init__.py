"""The port to issue trackers. ADAPTERS finds an adapter by its kind; no module names one."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from enum import StrEnum
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from msgspec import Struct, field
from pydantic import BaseModel

from sortie.adapters import Adapters
from sortie.config.report import Finding
from sortie.config.settings import TrackerSettings
from sortie.model import Issue, IssueId, RateBudget, Sighting, TrackerError, state_key
from sortie.model.checks import Check
from sortie.model.hiding import repr_without
from sortie.model.trust import Endorsement, Right


class IssuesRead(Struct, frozen=True, kw_only=True):
    """The answer to a re-read: an issue that was asked for and is in neither field is not there.

    ``failed`` holds the issues that exist but could not be read.
    """

    issues: tuple[Issue, ...] = ()
    failed: Mapping[IssueId, TrackerError] = field(default_factory=dict)


class UnreadableIssue(Struct, frozen=True, kw_only=True):
    """Something in the tracker that is meant as an issue and cannot be given as one.

    ``message`` begins with the place; ``names`` are those by which people may ask for it.
    """

    message: str
    names: frozenset[str] = frozenset()


class Overview(Struct, frozen=True, kw_only=True):
    """What the last answers told of issues, whatever their states; empty before the first."""

    issues: tuple[Issue, ...] = ()
    unreadable: tuple[UnreadableIssue, ...] = ()


class TrackerStates(Struct, frozen=True, kw_only=True):
    """The states that the settings name, by what they mean; ``state_key`` compares them.

    ``active`` are those of all rules, and ``others`` those that rules move issues to. ``labels``
    are those that are labels in a tracker with states of its own.
    """

    active: tuple[str, ...] = ()
    terminal: tuple[str, ...] = ()
    in_progress: str | None = None
    handoff: str | None = None
    others: tuple[str, ...] = ()
    labels: tuple[str, ...] = ()

    @property
    def handoffs(self) -> tuple[str, ...]:
        """Those to which issues are moved and in which no agent works on them."""
        active = set(map(state_key, self.active))
        names = (self.handoff, *self.others)
        return tuple(name for name in names if name is not None and state_key(name) not in active)

    @property
    def named(self) -> tuple[str, ...]:
        """All of them, in the order of a life of an issue, each spelling once."""
        names = (*self.active, self.in_progress, self.handoff, *self.others, *self.terminal)
        return tuple(dict.fromkeys(name for name in names if name is not None))


class Capability(StrEnum):
    """What some trackers can do and others cannot; the contract suite asks for what is declared."""

    LIST_COMMENTS = "list_comments"  # lists hold the issues' comments; a re-read always does
    BLOCKERS = "blockers"
    LABELS = "labels"
    FREE_STATES = "free_states"  # an issue can be in, and move to, states that no setting names
    COMPARE_AND_SET = "compare_and_set"  # of several moves out of one state only one is made
    CHANGES = "changes"  # ``changed`` returns
    REMOVALS = "removals"  # each list is without what was removed; a re-read always is
    COMMENT_KEYS = "comment_keys"  # a comment is found again by its key, whatever it says
    RATE_LIMITS = "rate_limits"  # errors say how long the tracker wants to be left alone


class Tracker(Protocol):
    """An issue tracker. Every request raises TrackerError and nothing else that is expected.

    The guard around it gives up a request that neither ends nor calls ``progress`` of its context
    for a minute, and makes none while the tracker wants to be left alone: an adapter neither
    sleeps nor tries again by itself. Requests are made at once, and may be cancelled.
    """

    async def fetch_candidates(self, states: Collection[str]) -> Sequence[Issue]:
        """Return the issues in these states, with their blockers' states, in any order.

        Where nothing has changed, the same tuple of the same issues saves others looking at them.
        """
        ...

    async def fetch_by_ids(self, ids: Collection[IssueId]) -> IssuesRead:
        """Read these issues again, whatever their states, with their comments."""
        ...

    async def find(self, name: str) -> Issue | None:
        """Return the issue with that identifier or id and its comments; None: there is none.

        Raises TrackerError (INVALID) where there is one that cannot be read.
        """
        ...

    async def transition(self, issue: Issue, state: str) -> Issue:
        """Move an issue to a state and return it as it stands then, with its comments.

        Raises TrackerError (CONFLICT) where it is no longer in ``issue.state``.
        """
        ...

    async def complete_move(self, issue: Issue) -> None:
        """Do what an earlier move to the state of this issue has left undone, if anything.

        For trackers in which a move takes several requests, so that it may have been cut off.
        """
        import trio  # here, as commands that only read settings do without

        del issue  # this one moves in one step
        await trio.lowlevel.checkpoint()

    async def comment(
        self, issue: Issue, body: str, key: str | None = None, *, again: bool = False
    ) -> None:
        """Add a comment to an issue.

        ``key`` names this comment and no other. A second try gives the same key, by which a
        tracker over a network finds what it has made although the answer was lost. ``again``: it
        may have been made by an earlier life, of which this tracker knows nothing.
        """
        ...

    async def changed(self) -> None:
        """Return once issues may have changed since the last call, so that they are listed early.

        A tracker that is not told of changes waits for ever, as this one does.
        """
        import trio  # here, as commands that only read settings do without

        await trio.sleep_forever()

    def configure(self, states: TrackerStates) -> None:
        """Take over the states that a reload has changed; requests under way may use either.

        Raises TrackerError where they cannot be told apart in this tracker: the reload is refused.
        """
        del states  # this one tells none apart

    def overview(self) -> Overview:
        """Return at once what is known of all issues, those included that no list gives.

        A tracker that is not told of them all knows those that it came across.
        """
        return Overview()

    def budgets(self) -> Sequence[RateBudget]:
        """Return at once what the last answers said of the tracker's limits; none where they do
        not speak of any."""
        return ()

    def checks(self) -> Sequence[Check]:
        """Return what ``sortie doctor`` asks, in this order, to find what is wrong and say so.

        Each asks the tracker for as little as it needs and changes nothing; TrackerError is a
        failed check. Trackers use the same names for the same thing, as far as they have it:
        ``reach`` (it answers, and as what), ``clock``, ``credential`` (who am I, until when),
        ``scopes``, ``project``, ``read``, ``write`` (may I, without writing), ``states`` (which of
        those that the settings name exist, and which there are), ``filter`` and ``budget``. That
        candidates can be listed is checked for every tracker, after these.
        """
        return ()

    def list_pause(self) -> float:
        """Return how many seconds to wait, at least, from one list to the next.

        With it the requests that are left last until more are granted.
        """
        return 0.0


@runtime_checkable
class TellsOfPeople(Protocol):
    """A tracker that tells of the people in it. Both raise TrackerError."""

    async def may(self, author_id: str, right: Right) -> bool:
        """Tell whether somebody has a right; False for who is unknown to the tracker.

        ``author_id`` is that of an issue or a comment. PERMISSION is raised where the account of
        the key may not ask it of anybody.
        """
        ...

    async def endorsement(self, issue: Issue, label: str) -> Endorsement | None:
        """Return who has put a label on an issue, as it stands now; None where it does not stand
        there, or cannot be told."""
        ...


class Sightings(Protocol):
    """A memory of when issues were first seen, for trackers that keep no times."""

    async def sight(self, digests: Mapping[str, str]) -> Mapping[str, Sighting]:
        """Note the present digest of each issue (by id) and return what is known of each."""
        ...


class TrackerContext(Struct, frozen=True, kw_only=True):
    """What an adapter is made from; relative paths in ``settings`` are already absolute.

    ``settings`` is the adapter's own block; ``endpoint``, ``api_key``, ``project`` and
    ``query_filter`` come from ``tracker``, or are the adapter's defaults. ``progress`` is called
    in a long request with each step of it, such as a page: its time limit begins anew.
    """

    settings: BaseModel
    directory: Path  # of WORKFLOW.md
    sightings: Sightings
    states: TrackerStates
    progress: Callable[[], object] = lambda: None
    endpoint: str | None = None
    api_key: str | None = None
    project: str | None = None
    query_filter: str | None = None

    __repr__ = repr_without("api_key")


class TrackerAdapter(Struct, frozen=True, kw_only=True):
    """What an adapter's folder offers; ``block`` is the schema of its block, ``block_name``.

    ``open`` is entered once and left at the end; it makes no request, and raises TrackerError
    where the settings cannot be used. Of ``endpoint``, ``api_key``, ``project`` and
    ``query_filter`` of ``tracker`` those in ``required`` must be set, those in ``optional`` may be
    and have these defaults, and the others mean nothing to this tracker. ``check`` takes the
    settings of ``tracker`` and of the block, and yields what is wrong with them as far as that can
    be known without asking the tracker; each finding is told at its place. ``rights`` are those of
    which ``may`` of its tracker, which then TellsOfPeople, can tell. ``label_states``: it has
    states of its own, and keeps those of ``TrackerStates.labels`` as labels.
    """

    kind: str
    block_name: str
    block: type[BaseModel]
    open: Callable[[TrackerContext], AbstractAsyncContextManager[Tracker]]
    required: frozenset[str] = frozenset()
    optional: Mapping[str, str | None] = field(default_factory=dict)
    capabilities: frozenset[Capability] = frozenset()
    rights: frozenset[Right] = frozenset()
    label_states: bool = False
    check: Callable[[TrackerSettings, Any], Iterable[Finding]] = lambda _tracker, _block: ()


ADAPTERS = Adapters(__name__, TrackerAdapter, shared=frozenset({"http"}))
