"""The port between HTTP and the daemon: what can be asked of it, and the commands that it obeys.

Rule 1: a command is answered once it is on record, so that a crash does not undo it.
Rule 2: no answer waits for the tracker.
"""

from __future__ import annotations

from collections.abc import Sequence, Set
from typing import Literal, Protocol

from msgspec import Struct

from sortie.model import RunId
from sortie.model.asked_questions import QuestionAnswer
from sortie.store import DayRow
from sortie.telemetry.transcripts import TranscriptPage
from sortie.web.dashboard.activity import ActivityView
from sortie.web.health import Health
from sortie.web.issue import ExplanationView, IssueView
from sortie.web.leases import LeadershipView
from sortie.web.runs import RunView
from sortie.web.state import StateView

CommandStatus = Literal[200, 202, 404, 409, 503]


class CommandAnswer(Struct, frozen=True, kw_only=True):
    """What became of a command: 200 done, 202 under way, 404 no such issue, 409 not possible now,
    503 not on record yet. ``message`` is a sentence for the operator."""

    status: CommandStatus
    message: str


class TranscriptSource(Protocol):
    """Transcripts of runs; ``page`` and ``last`` raise OSError and Shortage."""

    async def page(self, run_id: RunId, after: int, limit: int) -> TranscriptPage:
        """Return at most ``limit`` lines after the line with the number ``after``."""
        ...

    async def last(self, run_id: RunId, limit: int) -> TranscriptPage:
        """Return the last lines."""
        ...

    def is_live(self, run_id: RunId) -> bool:
        """Tell whether more lines may follow."""
        ...


class DaemonSource(Protocol):
    """A running daemon. Issues are named by identifier or id; a sentence instead of a view says
    why there is none. Questions about records raise StoreError."""

    @property
    def transcripts(self) -> TranscriptSource:
        """What runs have said and done."""
        ...

    def secrets(self) -> Set[str]:
        """Return the secrets in force, which no answer may hold."""
        ...

    def state(self) -> StateView:
        """Return the state, with the first of the queued and blocked issues."""
        ...

    def overview(self, waiting: int) -> StateView:
        """Return the state with no more than ``waiting`` of the waits, those that are due first."""
        ...

    def whole_state(self) -> StateView:
        """Return the state with all queued and blocked issues."""
        ...

    def health(self) -> Health:
        """Return whether the daemon does its work."""
        ...

    def activity(self) -> ActivityView:
        """Return what has happened in the last hours."""
        ...

    async def refresh(self) -> CommandAnswer:
        """Poll now."""
        ...

    async def pause(self) -> CommandAnswer:
        """Start no run any more."""
        ...

    async def resume(self) -> CommandAnswer:
        """End the pause."""
        ...

    async def stop(self, issue: str) -> CommandAnswer:
        """End a run or wait, and hold the issue."""
        ...

    async def retry(self, issue: str) -> CommandAnswer:
        """Make a waiting or held issue due now."""
        ...

    async def send_again(self, notification: int | None) -> CommandAnswer:
        """Let a notification that was given up, or all of them, be sent again."""
        ...

    async def answer(self, issue: str, answer: QuestionAnswer) -> CommandAnswer:
        """Answer the question for which an issue is held."""
        ...

    async def explain(self, issue: str) -> ExplanationView | str:
        """Explain how an issue stands that the daemon has in hand."""
        ...

    async def issue(self, issue: str) -> IssueView | str:
        """Return how an issue stands, and its last runs."""
        ...

    async def history(
        self, *, issue: str | None, limit: int, before: str | None, rule: str | None = None
    ) -> Sequence[RunView]:
        """Return runs, newest first, after the run ``before``, of a ``rule`` where one is given, ""
        for the top level. Raises UnknownRun."""
        ...

    async def leaderships(self, limit: int, before: int | None) -> Sequence[LeadershipView]:
        """Return which daemons led the workflow, the newest first, by tokens below ``before``;
        none where its database is a file."""
        ...

    async def run(self, run_id: str) -> RunView | None:
        """Return a recorded run."""
        ...

    async def diff(self, run_id: str) -> str | None:
        """Return what a run's work changes against its base, None where it is not recorded."""
        ...

    async def days(self, count: int) -> Sequence[DayRow]:
        """Return what was used on so many last days."""
        ...
