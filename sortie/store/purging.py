"""Forget all that is recorded of one issue."""

from __future__ import annotations

from msgspec import Struct

from sortie.model import RunId, StoreError
from sortie.store.database import Database

_STATEMENTS = (
    "delete_comments_of_issue",
    "delete_runs_of_issue",
    "delete_workspaces_of_issue",
    "delete_sighting",
    "delete_retry",
    "delete_hold",
    "delete_sessions",
    "delete_spent",
    "delete_watch",
    "delete_rule",
    "delete_stage",
    "delete_question",
    "delete_crashes",
    "delete_notifications_of_issue",
)
"""Each deletes the rows of an issue in one table; those of diffs go with their runs."""


class PurgedIssue(Struct, frozen=True, kw_only=True):
    """What was forgotten: the runs, and where their workspaces are, by host and path."""

    runs: tuple[RunId, ...]
    workspaces: tuple[tuple[str, str], ...]


def purge_issue(database: Database, issue: str) -> PurgedIssue:
    """Forget an issue, named by its identifier or its id; sums over all issues stay.

    Raises StoreError where nothing is recorded of it, and for one with a run under way.
    """
    ids = [row["issue_id"] for row in database.rows("ids_of_issue", issue=issue)]
    if not ids:
        raise StoreError(f"nothing of {issue} is recorded in the database {database.name}")
    runs, workspaces = list[RunId](), list[tuple[str, str]]()
    with database.transaction():
        for issue_id in ids:
            for row in database.rows("runs_of_issue", issue_id=issue_id):
                if row["finished_at"] is None:
                    raise StoreError(
                        f"a run of {issue} is recorded as under way, since the last daemon did not"
                        " end in good order; start `sortie run` once and end it with SIGTERM"
                    )
                runs.append(RunId(row["run_id"]))
            for row in database.rows("workspaces_of_issue", issue_id=issue_id):
                workspaces.append((row["host"], row["path"]))
            for statement in _STATEMENTS:
                database.change(statement, issue_id=issue_id)
    return PurgedIssue(runs=tuple(runs), workspaces=tuple(workspaces))
