"""The examples of the page on maintenance name what there is."""

from __future__ import annotations

import re
import sqlite3
from pathlib import Path

from sortie.store.database import Database
from sortie.store.schema_versions import migrate, migrations
from tests.docs.pages import page

TEXT = page("maintenance.md")


def test_questions_to_the_database_can_be_answered(tmp_path: Path) -> None:
    """Statements of the page compile on the schema of this version."""
    path = str(tmp_path / "db")
    connection = sqlite3.connect(path, isolation_level=None)
    migrate(Database(connection, path), migrations())

    asked = re.findall(r'"(SELECT [^"]+)"', TEXT)

    assert asked
    for statement in asked:
        assert connection.execute(statement).fetchall() == []
    connection.close()
