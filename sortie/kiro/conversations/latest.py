"""The newest conversation of one directory in each of Kiro's stores, found and read in bounds.

To find out what a turn has added: ``look`` before it, and ``read`` afterwards what has changed.
Sessions of other directories add no cost beyond a list of names.
"""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

from msgspec import Struct, field

from sortie.json_rpc import values
from sortie.kiro.conversations.database_v1 import opened, tables
from sortie.kiro.conversations.files import lines_in, object_in, read_bytes
from sortie.kiro.conversations.history_v1 import read_document
from sortie.kiro.conversations.records import (
    Conversation,
    ConversationError,
    ConversationSummary,
    Engine,
)
from sortie.kiro.conversations.session_files import SessionFiles
from sortie.kiro.conversations.sessions_v2 import SessionsV2
from sortie.kiro.conversations.sessions_v3 import SessionsV3
from sortie.kiro.places import KiroPlaces

LOOKED_AT = 50
"""Sessions of an engine that are looked into, the newest first; so many may have changed since."""

DATABASE_TIMEOUT = 0.5
"""Seconds for which a database that is being written is waited for."""

NEWEST_ROW = (
    "SELECT conversation_id, updated_at, length(CAST(value AS BLOB)) FROM conversations_v2"
    " WHERE rowid = (SELECT rowid FROM conversations_v2 WHERE key = {key}"
    " ORDER BY updated_at DESC, rowid DESC LIMIT 1)"
)
NEWEST_VALUE = (
    "SELECT value FROM conversations_v2 WHERE key = {key}"
    " ORDER BY updated_at DESC, rowid DESC LIMIT 1"
)
OLDER_ROW = "SELECT '', 0, length(CAST(value AS BLOB)) FROM conversations WHERE key = {key}"
OLDER_VALUE = "SELECT value FROM conversations WHERE key = {key}"

V1, OLDER, V2, V3 = "v1", "v1-older", "v2", "v3"
STORES: Mapping[str, Engine] = {V1: "v1", OLDER: "v1", V2: "v2", V3: "v3"}
"""The stores by name, and the engine of each; v1 has two tables."""

_FILES: Mapping[str, type[SessionFiles]] = {V2: SessionsV2, V3: SessionsV3}
_TABLES = {
    V1: ("conversations_v2", NEWEST_ROW, NEWEST_VALUE),
    OLDER: ("conversations", OLDER_ROW, OLDER_VALUE),
}


class Sight(Struct, frozen=True, kw_only=True):
    """The version of the newest conversation in each store.

    Another conversation, or a changed one, has another version. ``troubles`` has the stores that
    could not be read, with the reason.
    """

    versions: Mapping[str, str] = field(default_factory=dict)
    troubles: Mapping[str, str] = field(default_factory=dict)

    def changed_since(self, before: Sight) -> list[str]:
        """Return the stores whose newest conversation is another one, or has changed."""
        return [
            store
            for store, version in self.versions.items()
            if store not in before.troubles and before.versions.get(store) != version
        ]

    def doubts_since(self, before: Sight) -> str:
        """Say what is not known now or was not before, "" where all is."""
        troubles = {**before.troubles, **self.troubles}
        return "; ".join(dict.fromkeys(troubles.values()))


class LatestConversations:
    """The stores in ``places``, for one directory, by its real path. Every method blocks.

    ``limit`` is how many bytes of one conversation are read, and of all others to find it.
    """

    def __init__(self, places: KiroPlaces, directory: str, limit: int) -> None:
        self._places = places
        self._directory = os.path.realpath(directory)
        self._limit = limit
        self._found: dict[str, str] = {}

    def look(self) -> Sight:
        """Return what is there now."""
        versions, troubles = dict[str, str](), dict[str, str]()
        self._look(V1, self._look_at_v1, versions, troubles)
        self._look(V2, lambda: self._look_at_files(V2), versions, troubles)
        self._look(V3, lambda: self._look_at_files(V3), versions, troubles)
        return Sight(versions=versions, troubles=troubles)

    def read(self, store: str) -> Conversation:
        """Return the conversation that the last look has found. Raises ConversationError."""
        return self._read_v1(store) if store in _TABLES else self._read_files(store)

    @staticmethod
    def _look(
        store: str,
        look: Callable[[], Mapping[str, str]],
        versions: dict[str, str],
        troubles: dict[str, str],
    ) -> None:
        try:
            versions |= look()
        except (ConversationError, OSError) as exc:
            troubles[store] = str(exc)

    def _look_at_v1(self) -> dict[str, str]:
        found: dict[str, str] = {}
        if not os.path.isfile(self._places.database):
            return found
        with opened(self._places.database, DATABASE_TIMEOUT) as database:
            there = tables(database)
            for store, (table, query, _) in _TABLES.items():
                if table in there and (row := self._row(database, query)) is not None:
                    found[store] = " ".join(map(str, row))
        return found

    def _read_v1(self, store: str) -> Conversation:
        _, row_query, value_query = _TABLES[store]
        with opened(self._places.database, DATABASE_TIMEOUT) as database:
            row = self._row(database, row_query)
            self._require_size(0 if row is None else row[2], self._places.database)
            found = self._row(database, value_query)
        content = found[0] if found else None
        text = content.encode(errors="replace") if isinstance(content, str) else b""
        return conversation_from(store, self._places.database, self._directory, text)

    def _row(self, database: sqlite3.Connection, query: str) -> Any:
        return database.execute(query.format(key="?"), (self._directory,)).fetchone()

    def _require_size(self, size: object, path: str) -> None:
        if not isinstance(size, int) or size > self._limit:
            raise ConversationError(f"{path}: the conversation has more than {self._limit} bytes")

    # v2 and v3

    def _look_at_files(self, store: str) -> dict[str, str]:
        """Return the version of the newest session of the directory: the sizes of its files."""
        self._found.pop(store, None)
        files = _FILES[store](self._places.sessions, self._limit)
        times = []
        for path in files.paths():
            with suppress(OSError):
                times.append((os.stat(path).st_mtime_ns, path))
        left = self._limit
        for _, path in sorted(times, reverse=True)[:LOOKED_AT]:
            with suppress(ConversationError):
                content = read_bytes(path, left)
                left -= len(content)
                if is_about(store, content, self._directory):
                    self._found[store] = path
                    sizes = _sizes(path, files.messages_path(path))
                    return {store: " ".join(map(str, (path, *sizes)))}
        return {}

    def _read_files(self, store: str) -> Conversation:
        path = self._found[store]
        messages = _FILES[store].messages_path(path)
        self._require_size(sum(_sizes(path, messages)), path)
        session = read_bytes(path, self._limit)
        try:
            said = read_bytes(messages, self._limit)
        except ConversationError:
            if os.path.lexists(messages):
                raise
            said = b""
        return conversation_from(store, path, self._directory, session, said)


def is_about(store: str, content: bytes, directory: str) -> bool:
    """Tell whether a session's file is one of a directory; most are sorted out unparsed."""
    # A directory stands in JSON all in ASCII, or as it is.
    plain = json.dumps(directory, ensure_ascii=False).encode(errors="surrogateescape")
    if json.dumps(directory).encode() not in content and plain not in content:
        return False
    return directory in _FILES[store].directories(object_in(content) or {})


def conversation_from(
    store: str, place: str, directory: str, content: bytes, messages: bytes = b""
) -> Conversation:
    """Return a conversation from what a store keeps of it: a document, or a session's two files.

    Raises ConversationError for what is none.
    """
    document = object_in(content)
    if document is None:
        raise ConversationError(f"{place} holds no conversation that can be read")
    key = _FILES[store].KEYS[0] if store in _FILES else "conversation_id"
    summary = ConversationSummary(
        engine=STORES[store],
        id=values.text(document, key) or place,
        directory=directory,
        place=place,
    )
    if store in _FILES:
        return _FILES[store].conversation(document, lines_in(messages), summary)
    return read_document(document, summary)


def _sizes(*paths: str) -> tuple[int, ...]:
    sizes = []
    for path in paths:
        try:
            sizes.append(os.stat(path).st_size)
        except OSError:
            sizes.append(0)
    return tuple(sizes)
