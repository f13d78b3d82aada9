"""What is on record: the rows of a real database, as a simulated world looks at them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeVar

from sortie.model import NOTHING, AgentSession, IssueId, KnownWorkspace, RunId, Spending
from sortie.model.stages import PassedStage
from sortie.scheduler import Record
from sortie.scheduler import records as rec
from sortie.store import (
    HistoryRow,
    Recovered,
    StoredCrash,
    StoredHold,
    StoredLimit,
    StoredQuestion,
    StoredRetry,
    UnfinishedRun,
)
from sortie.store import rows as read
from sortie.store.database import Row
from sortie.store.history_rows import history_row
from sortie.store.record_writer import write
from sortie.store.sqlite_database import SqliteDatabase

T = TypeVar("T")
K = TypeVar("K")

_RUN = "SELECT * FROM runs WHERE run_id = ?"
_FORGETTING = (rec.ForgetRetry, rec.ForgetHold, rec.ForgetWorkspace, rec.ForgetQuestion)


class Disk:
    """Rows by key, each table read when somebody looks; ``changed`` tells that there are others."""

    def __init__(self, database: SqliteDatabase) -> None:
        self._database = database
        self._tables: dict[str, object] = {}

    def write(self, record: Record, at: float) -> None:
        """Write a record at Unix time ``at``; whoever forgets something must have recorded it."""
        before = self._database._connection.total_changes
        write(self._database, [record], at, inherited=0)
        if isinstance(record, _FORGETTING):
            assert self._database._connection.total_changes > before, f"nothing to forget: {record}"
        self.changed()

    def changed(self) -> None:
        """Look at the rows anew from now on."""
        self._tables.clear()

    def recover(self) -> Recovered:
        """Return all that a new life needs."""
        return Recovered(
            unfinished=tuple(self.under_way.values()),
            retries=tuple(self.retries.values()),
            holds=tuple(self.holds.values()),
            paused=self.paused,
            agent_sessions=self.agent_sessions,
            sessions=dict(self.sessions),
            spent=dict(self.spent),
            days={day: spent for day, spent in self.days.items() if spent != NOTHING},
            limits=tuple(self.limits.values()),
            workspaces=tuple(self.workspaces.values()),
            unsaved=self.unsaved,
            rules=self.rules,
            stages=self.stages,
            questions=self.questions,
            crashes=tuple(self.crashes.values()),
            comments=tuple(self.comments.values()),
        )

    def run(self, run_id: str) -> HistoryRow | None:
        """Return a run, None where it is not recorded."""
        row = self._database._connection.execute(_RUN, (run_id,)).fetchone()
        return None if row is None else history_row(row)

    @property
    def under_way(self) -> Mapping[RunId, UnfinishedRun]:
        """Runs that are not over."""
        return self._table("unfinished_runs", read.unfinished_run, lambda run: run.run_id)

    @property
    def rules(self) -> Mapping[IssueId, str]:
        """The rules that were chosen for issues."""
        rows = self._database.rows("all_rules")
        return {IssueId(row["issue_id"]): row["rule"] for row in rows}

    @property
    def stages(self) -> Mapping[IssueId, PassedStage]:
        """What is known of the stages of issues."""
        rows = self._database.rows("all_stages")
        return {IssueId(row["issue_id"]): read.stage_from_json(row["passed"]) for row in rows}

    @property
    def questions(self) -> Mapping[IssueId, StoredQuestion]:
        """The newest questions of issues."""
        rows = self._table("all_questions", dict, lambda row: IssueId(row["issue_id"]))
        return {issue_id: read.stored_question(row) for issue_id, row in rows.items()}

    @property
    def retries(self) -> Mapping[IssueId, StoredRetry]:
        """Waits."""
        return self._table("all_retries", read.stored_retry, lambda wait: wait.issue.id)

    @property
    def holds(self) -> Mapping[IssueId, StoredHold]:
        """Holds."""
        return self._table("all_holds", read.stored_hold, lambda hold: hold.issue.id)

    @property
    def crashes(self) -> Mapping[IssueId, StoredCrash]:
        """Issues that were handled when the daemon crashed."""
        return self._table("all_crashes", read.stored_crash, lambda crash: crash.issue.id)

    @property
    def comments(self) -> Mapping[tuple[RunId, str], rec.RecordComment]:
        """Comments that are to be made."""
        return self._table("all_comments", read.due_comment, lambda c: (c.run_id, c.lifecycle))

    @property
    def workspaces(self) -> Mapping[tuple[str, str], KnownWorkspace]:
        """Directories by host and path."""
        return {place: known for place, (known, _) in self._kept().items()}

    @property
    def unsaved(self) -> Mapping[tuple[str, str], float]:
        """Since when directories count as unsaved."""
        return {place: at for place, (_, at) in self._kept().items() if at is not None}

    def _kept(self) -> Mapping[tuple[str, str], tuple[KnownWorkspace, float | None]]:
        return self._table(
            "all_workspaces",
            lambda row: (read.known_workspace(row), row["unsaved_since"]),
            lambda found: (found[0].host, found[0].path),
        )

    @property
    def sessions(self) -> Mapping[IssueId, int]:
        """Counted sessions."""
        rows = self._table("all_sessions", dict, lambda row: IssueId(row["issue_id"]))
        return {issue_id: row["sessions"] for issue_id, row in rows.items()}

    @property
    def spent(self) -> Mapping[IssueId, Spending]:
        """What issues have used since their budgets began."""
        rows = self._table("all_spent", dict, lambda row: IssueId(row["issue_id"]))
        return {issue_id: read.spending(row) for issue_id, row in rows.items()}

    @property
    def days(self) -> Mapping[str, Spending]:
        """What was used on the last days."""
        rows = self._table("last_days", dict, lambda row: str(row["day"]))
        return {day: read.spending(row) for day, row in rows.items()}

    @property
    def limits(self) -> Mapping[str, StoredLimit]:
        """Usage limits by account."""
        return self._table("all_limits", read.stored_limit, lambda limit: limit.account)

    @property
    def agent_sessions(self) -> Mapping[IssueId, AgentSession]:
        """What the newest runs told of their agents' sessions."""
        rows = self._table("agent_sessions", dict, lambda row: IssueId(row["issue_id"]))
        return {issue_id: read.agent_session(row) for issue_id, row in rows.items()}

    @property
    def paused(self) -> bool:
        """Whether dispatch is paused."""
        return True in self._table("paused", lambda row: bool(row["paused"]), lambda paused: paused)

    def close(self) -> None:
        """Look no more."""
        self._database.close()

    def _table(
        self, query: str, record: Callable[[Row], T], key: Callable[[T], K]
    ) -> Mapping[K, T]:
        if query not in self._tables:
            found = map(record, self._database.rows(query))
            self._tables[query] = {key(thing): thing for thing in found}
        return self._tables[query]  # type: ignore[return-value]
