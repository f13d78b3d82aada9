"""What the third schema told by a sentence alone has a column of its own in the fourth."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from sortie.model import IssueId, StopReason
from sortie.store.readonly import read_history
from sortie.store.rows import issue_to_json
from sortie.store.schema_versions import migrate, migrations
from sortie.store.sqlite import open_store
from tests.store.records import T0, an_issue
from tests.store.test_schema_versions import a_database

RUN = """
INSERT INTO runs (run_id, issue_id, identifier, failures, continuations, interruptions, host,
  agent, status, error_kind, error, started_at, seen_at, finished_at)
VALUES (?, ?, 'A-1', 0, 0, 0, 'local', 'kiro', ?, 'turn_cancelled', ?, ?, ?, ?)
"""
HOLD = "INSERT INTO holds (issue_id, issue, reason, detail, since) VALUES (?, ?, ?, ?, ?)"

RUNS = {
    "stopped": ("cancelled", "the run was stopped: operator", StopReason.OPERATOR),
    "finished": ("cancelled", "the run was stopped: terminal", StopReason.TERMINAL),
    "killed": ("cancelled", "the run was stopped: killed by the kernel", None),
    "failed": ("failed", "the run was stopped: operator", None),
    "silent": ("cancelled", None, None),
}
HOLDS = {
    "review": ("handoff_failed", "it could not be moved to In Review: it is: no", "In Review"),
    "ünï": ("handoff_failed", "it could not be moved to Prüfung: no", "Prüfung"),
    "nowhere": ("handoff_failed", "it could not be moved to None: no", None),
    "odd": ("handoff_failed", "somebody wrote this", None),
    "parked": ("operator", "it could not be moved to Review: no", None),
}


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """Where a database of the third schema is, as that version wrote it."""
    place = tmp_path / "sortie.db"
    database, _ = a_database(place)
    migrate(database, migrations()[:3])
    database.close()
    connection = sqlite3.connect(place)
    for number, (name, (status, error, _)) in enumerate(RUNS.items()):
        at = T0 + number
        connection.execute(RUN, (name, f"id-{name}", status, error, at, at, at))
    for name, (reason, detail, _) in HOLDS.items():
        issue = an_issue(name, id=IssueId(name))
        connection.execute(HOLD, (name, issue_to_json(issue), reason, detail, T0))
    connection.commit()
    connection.close()
    return place


async def test_what_the_sentences_told_is_in_the_columns(place: Path) -> None:
    """Only what that version itself said of a run it stopped, or of a handoff that failed, counts;
    the sentences stay."""
    async with open_store(str(place)) as store:
        rows, holds = await store.history(), (await store.recover()).holds

    assert {row.run_id: (row.status, row.error, row.stopped_for) for row in rows} == RUNS
    assert {h.issue.id: (h.reason, h.detail, h.handoff_state) for h in holds} == HOLDS


def test_history_of_the_third_schema_is_read_as_it_is(place: Path) -> None:
    """Without the column nobody claims to know why a run was stopped."""
    before = place.read_bytes()

    rows = read_history(str(place))

    assert {row.run_id: row.stopped_for for row in rows} == dict.fromkeys(RUNS)
    assert place.read_bytes() == before
