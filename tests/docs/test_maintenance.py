"""The examples of the page on maintenance name what there is."""

from __future__ import annotations

import json
import re
import shutil
import sqlite3
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from sortie.store.schema_versions import migrate, migrations
from sortie.store.sqlite_database import SqliteDatabase
from tests.docs.pages import page

TEXT = page("maintenance.md")


def test_questions_to_the_database_can_be_answered(tmp_path: Path) -> None:
    """Statements of the page compile on the schema of this version."""
    path = str(tmp_path / "db")
    connection = sqlite3.connect(path, isolation_level=None)
    migrate(SqliteDatabase(connection, path), migrations())

    asked = re.findall(r'"(SELECT [^"]+)"', TEXT)

    assert asked
    for statement in asked:
        assert connection.execute(statement).fetchall() == []
    connection.close()


def code_below(heading: str) -> list[str]:
    """Return the shell blocks of a section, without what they are indented by."""
    section = TEXT.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    blocks = re.findall(r"^( *)```sh\n(.*?)^ *```$", section, re.DOTALL | re.MULTILINE)
    return [
        "".join(line[len(indent) :] for line in code.splitlines(True)) for indent, code in blocks
    ]


@pytest.mark.skipif(shutil.which("jq") is None, reason="needs jq")
def test_the_journal_can_be_asked() -> None:
    """Lines of systemd's own and tracebacks in it do not end the question."""
    (code,) = code_below("Logs in the journal")
    wanted = {"level": "warning", "event": "issue.held", "issue": "TASK-1"}
    journal = "\n".join(
        (
            "Starting sortie.service - Sortie, /srv/sortie/WORKFLOW.md...",
            json.dumps({"level": "info", "event": "daemon.started"}),
            "Traceback (most recent call last):",
            json.dumps(wanted),
            "Started sortie.service - Sortie, /srv/sortie/WORKFLOW.md.",
            "sortie.service: Consumed 3.1s CPU time.",
            "",
        )
    )

    questions = [line.partition(" | ")[2] for line in code.splitlines() if " | " in line]
    answers = [
        subprocess.run(
            ["sh", "-c", question], input=journal, capture_output=True, text=True, check=True
        ).stdout
        for question in questions
    ]

    assert len(answers) == 2
    assert [json.loads(answer) for answer in answers] == [wanted, wanted]


@pytest.fixture
def kept(tmp_path: Path) -> Iterator[Path]:
    """A database in use, whose last run is in its -wal file, with a transcript."""
    path = tmp_path / "srv/.sortie.db"
    path.parent.mkdir()
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("PRAGMA journal_mode = WAL")
    migrate(SqliteDatabase(connection, str(path)), migrations())
    connection.execute("UPDATE daemon SET checks = 42")
    said = tmp_path / "srv/.sortie.db.transcripts"
    said.mkdir(0o700)
    (said / "run.jsonl.gz").write_bytes(b"said")
    yield path.parent
    connection.close()


@pytest.mark.skipif(shutil.which("sqlite3") is None, reason="needs sqlite3")
def test_what_is_backed_up_can_be_restored(kept: Path, tmp_path: Path) -> None:
    """The page's own commands save and bring back database and transcripts, twice."""
    backup, restore = code_below("Backup and restore")

    def play(code: str) -> None:
        code = code.replace("/backup", str(tmp_path / "backup"))
        subprocess.run(["sh", "-ec", code], cwd=kept, check=True)

    (tmp_path / "backup").mkdir()
    play(backup)
    play(backup)
    (kept / ".sortie.db.transcripts/run.jsonl.gz").write_bytes(b"other")
    play(restore)
    play(restore)

    with sqlite3.connect(kept / ".sortie.db") as restored:
        assert restored.execute("SELECT checks FROM daemon").fetchall() == [(42,)]
    restored.close()
    assert (kept / ".sortie.db").stat().st_mode & 0o777 == 0o600
    said = kept / ".sortie.db.transcripts"
    assert [path.name for path in said.iterdir()] == ["run.jsonl.gz"]
    assert (said / "run.jsonl.gz").read_bytes() == b"said"
    assert said.stat().st_mode & 0o777 == 0o700
