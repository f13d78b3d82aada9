"""The SQLite database in which engine v1 keeps its conversations.

Rule: only the tables of conversations are ever named; those beside them hold credentials.
"""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from typing import Any
from urllib.parse import quote

from sortie.kiro.conversations.history_v1 import last_change, read_document
from sortie.kiro.conversations.records import Conversation, ConversationError, ConversationSummary

_COLUMNS = "key, conversation_id, created_at, updated_at, length(CAST(value AS BLOB))"
_LIST = f"SELECT {_COLUMNS} FROM conversations_v2"
_ONE = "SELECT value FROM conversations_v2 WHERE key = ? AND conversation_id = ?"
_OLDER_LIST = "SELECT key, value FROM conversations WHERE length(CAST(value AS BLOB)) <= ?"
_OLDER_ONE = "SELECT value FROM conversations WHERE key = ?"
_DELETE = "DELETE FROM conversations_v2 WHERE key = ? AND conversation_id = ?"
_OLDER_DELETE = "DELETE FROM conversations WHERE key = ?"


class DatabaseV1:
    """The conversations in one database file, which need not be there.

    All methods raise ConversationError where it cannot be read. Documents of more than ``limit``
    bytes are not read. A database that is being written is waited for, ``patience`` seconds.
    """

    def __init__(self, path: str, limit: int, patience: float = 1.0) -> None:
        self._path = path
        self._limit = limit
        self._patience = patience

    def summaries(self, directory: str | None = None) -> list[ConversationSummary]:
        """Return the conversations of a directory, or all of them."""
        found: list[ConversationSummary] = []
        with opened(self._path, self._patience) as database:
            there = tables(database)
            if "conversations_v2" in there:
                where, values = ("", ()) if directory is None else (" WHERE key = ?", (directory,))
                rows = database.execute(_LIST + where, values)
                found += [s for row in rows if (s := self._summary(row)) is not None]
            if "conversations" in there:
                found += self._older(database, directory, {s.id for s in found})
        return found

    def load(self, summary: ConversationSummary) -> Conversation:
        """Return a conversation that was listed. Raises ConversationError where it is gone."""
        return read_document(json.loads(self.text(summary)), summary)

    def text(self, summary: ConversationSummary) -> str:
        """Return the document of a conversation, as it is. Raises as ``load`` does."""
        with opened(self._path, self._patience) as database:
            there = tables(database)
            for table, query, values in (
                ("conversations_v2", _ONE, (summary.directory, summary.id)),
                ("conversations", _OLDER_ONE, (summary.directory,)),
            ):
                row = database.execute(query, values).fetchone() if table in there else None
                document = self._document(row[0]) if row else None
                if row and document is not None and _id_of(document, summary.id) == summary.id:
                    return str(row[0])
        raise ConversationError(f"{self._path} has no readable conversation {summary.id}")

    def delete(self, summary: ConversationSummary) -> None:
        """Delete a conversation; one that is gone already is no error."""
        with opened(self._path, self._patience, write=True) as database:
            there = tables(database)
            if "conversations_v2" in there:
                database.execute(_DELETE, (summary.directory, summary.id))
            if "conversations" in there:
                row = database.execute(_OLDER_ONE, (summary.directory,)).fetchone()
                document = self._document(row[0]) if row else None
                if document is not None and _id_of(document, "") == summary.id:
                    database.execute(_OLDER_DELETE, (summary.directory,))
            database.commit()

    def _summary(self, row: Sequence[Any]) -> ConversationSummary | None:
        key, identity, created, updated, _size = row
        if not (isinstance(key, str) and isinstance(identity, str)):
            return None
        return ConversationSummary(
            engine="v1",
            id=identity,
            directory=key,
            place=self._path,
            created=created if isinstance(created, int) else None,
            updated=updated if isinstance(updated, int) else 0,
        )

    def _older(
        self, database: sqlite3.Connection, directory: str | None, known: set[str]
    ) -> Iterator[ConversationSummary]:
        """Return those of the older table, which has one of each directory and no times."""
        for key, value in database.execute(_OLDER_LIST, (self._limit,)):
            document = self._document(value)
            if not isinstance(key, str) or document is None or directory not in (None, key):
                continue
            identity = _id_of(document, "")
            if identity and identity not in known:
                changed = last_change(document) or 0
                yield ConversationSummary(
                    engine="v1", id=identity, directory=key, place=self._path, updated=changed
                )

    def _document(self, value: object) -> dict[str, Any] | None:
        if not isinstance(value, str) or len(value) > self._limit:
            return None
        try:
            document = json.loads(value)
        except (ValueError, RecursionError):
            return None
        return document if isinstance(document, dict) else None


@contextmanager
def opened(path: str, patience: float, *, write: bool = False) -> Iterator[sqlite3.Connection]:
    """Have the database open, one without tables where there is no file.

    One that is being written is waited for, ``patience`` seconds. Whatever SQLite
    raises meanwhile is raised as a ConversationError.
    """
    if not os.path.isfile(path):
        with closing(sqlite3.connect(":memory:")) as nothing:
            yield nothing
        return
    uri = f"file:{quote(os.path.abspath(path))}?mode={'rw' if write else 'ro'}"
    try:
        with closing(sqlite3.connect(uri, uri=True, timeout=patience)) as database:
            database.text_factory = _lenient
            yield database
    except sqlite3.Error as exc:
        raise ConversationError(f"{path} cannot be read: {exc}") from exc


def tables(database: sqlite3.Connection) -> set[object]:
    rows = database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
    return {row[0] for row in rows}


def _id_of(document: dict[str, Any], default: str) -> str:
    identity = document.get("conversation_id")
    return identity if isinstance(identity, str) else default


def _lenient(text: bytes) -> str:
    return text.decode(errors="replace")
