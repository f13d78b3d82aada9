"""The examples of the page on maintenance name what there is."""

from __future__ import annotations

import re
import sqlite3
from pathlib import Path

import yaml

from sortie.model import RunStatus
from sortie.store.database import Database
from sortie.store.schema_versions import migrate, migrations
from tests.docs.pages import code_blocks, page
from tests.docs.test_operating import metrics

TEXT = page("maintenance.md")


def rules() -> list[dict[str, str]]:
    (text,) = (code for language, code in code_blocks(TEXT) if "groups:" in code)
    (group,) = yaml.safe_load(text)["groups"]
    return list(group["rules"])


def test_alerts_ask_for_metrics_and_labels_that_there_are() -> None:
    """No rule is silent for ever because a name in it is wrong."""
    known = metrics()
    asked = " ".join(rule["expr"] for rule in rules())

    names = set(re.findall(r"sortie_\w+", asked))
    assert names
    assert names <= known.keys()
    for name, label in re.findall(r"(sortie_\w+)\{(\w+)=", asked):
        assert label in known[name][1]
    (exits,) = set(re.findall(r'exit_type=~"([\w|]+)"', asked))
    assert set(exits.split("|")) <= {status.value for status in RunStatus}


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
