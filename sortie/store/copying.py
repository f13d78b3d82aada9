"""Copy all rows of one database to another one of whatever kind, or none of them."""

from __future__ import annotations

import uuid
from collections.abc import Mapping

from sortie.model import StoreError
from sortie.store.database import Database, Row

TABLES: Mapping[str, str] = {
    "runs": "seq",
    "diffs": "run_id",
    "retries": "issue_id",
    "holds": "issue_id",
    "sessions": "issue_id",
    "workspaces": "host, path",
    "sightings": "issue_id",
    "crashes": "issue_id",
    "spent_by_issue": "issue_id",
    "spent_by_day": "day, agent",
    "usage_limits": "account",
    "comments_due": "rowid",
    "watches": "issue_id",
    "issue_rules": "issue_id",
    "stages": "issue_id",
    "notifications": "id",
    "questions": "issue_id",
    "daemon": "id",
    "totals": "id",
}
"""All tables but ``identity``, and in which order their rows are copied. Runs come first, since
what triggers make of them is replaced by what comes behind."""

_ALWAYS_FILLED = {"daemon", "totals"}


def copy_rows(source: Database, target: Database) -> Mapping[str, int]:
    """Copy all rows into a database that has none; return how many of each table.

    The id goes to the target, and the source gets another one: both would else take what the other
    one has started for their own. Raises StoreError for a source whose daemon did not end in good
    order, a target that is not empty, and a copy that is not whole, which is undone.
    """
    if unfinished := len(source.rows("unfinished_runs")):
        raise StoreError(
            f"cannot copy the database {source.name}: {unfinished} runs are recorded as under way,"
            " since its last daemon did not end in good order; start `sortie run` once and end it"
            " with SIGTERM"
        )
    if any(target.count(table) for table in TABLES.keys() - _ALWAYS_FILLED):
        raise StoreError(
            f"cannot copy to the database {target.name}: it has rows already; name an empty one"
        )
    identity = source.row("identity")
    with target.transaction():
        for table, order in TABLES.items():
            target.clear(table)
            target.insert_rows(table, map(_columns, source.every_row(table, order)))
        target.clear("identity")
        target.insert_rows("identity", [{**identity, **_NO_DAEMON}])
        counts = {table: target.count(table) for table in TABLES}
        for table, count in counts.items():
            if count != source.count(table):
                raise StoreError(
                    f"the copy of {table} has {count} rows, and there are {source.count(table)};"
                    " nothing was copied"
                )
        if target.row("totals") != source.row("totals"):
            raise StoreError("the totals of the copy are others; nothing was copied")
    with source.transaction():
        source.change("begin_life", id=uuid.uuid4().hex, **_NO_DAEMON)
    return counts


_NO_DAEMON: Mapping[str, None] = dict.fromkeys(("device", "inode", "pid", "started_at"))
"""What an identity says before its first daemon."""


def _columns(row: Row) -> Row:
    """Return the columns that both kinds have."""
    return {name: value for name, value in row.items() if name != "rowid"}
