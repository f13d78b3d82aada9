"""What Kiro has kept of the conversations of a directory, read without a thread.

Reading blocks for some milliseconds, since a document is read whole; the largest that is read takes
some 0.2 s. A database that is being written is asked again after a pause.
"""

from __future__ import annotations

import logging
import sqlite3
import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import TypeVar

from sortie.kiro.client.messages import SessionInfo
from sortie.kiro.client.waits import Wait, Waits
from sortie.kiro.conversations import (
    Answer,
    Conversation,
    ConversationError,
    ConversationStores,
    ConversationSummary,
    KiroPlaces,
    Prompt,
)

LARGEST = 16 * 1024 * 1024
"""Bytes of one document that are read."""

_NO_LIMIT = 1 << 40
_PATIENCE = 1.0  # seconds for a database that is being written
_PAUSE = 0.02
_log = logging.getLogger("sortie.kiro")

T = TypeVar("T")


class KeptConversations:
    """The conversations of one directory, in whichever store they are."""

    def __init__(self, directory: str, environment: Mapping[str, str]) -> None:
        self.directory = directory
        self._trouble: list[ConversationError] = []
        self._places = KiroPlaces.of(environment)
        self._stores = ConversationStores(
            self._places, limit=LARGEST, patience=0.0, on_trouble=self._trouble.append
        )

    def summaries(self) -> Waits[list[ConversationSummary]]:
        """Return those of the directory, the newest first; a store that is broken has none."""
        return (yield from self._patiently(lambda: self._stores.summaries(self.directory)))

    def everywhere(self) -> Waits[list[ConversationSummary]]:
        """Return those of all directories, the newest first."""
        return (yield from self._patiently(self._stores.summaries))

    def load(self, summary: ConversationSummary) -> Waits[Conversation]:
        """Return a conversation. Raises ConversationError."""
        return (yield from self._patiently(lambda: self._stores.load(summary)))

    def check(self, summary: ConversationSummary) -> Waits[None]:
        """Raise ConversationError where a conversation cannot be read, however large it is."""
        stores = ConversationStores(self._places, limit=_NO_LIMIT, patience=0.0)
        yield from self._patiently(lambda: stores.load(summary))

    def delete(self, summary: ConversationSummary) -> Waits[None]:
        """Delete a conversation. Raises ConversationError."""
        return (yield from self._patiently(lambda: self._stores.delete(summary)))

    def trouble(self) -> ConversationError | None:
        """Return why a store could not be listed the last time, if one could not."""
        return self._trouble[-1] if self._trouble else None

    def _patiently(self, act: Callable[[], T]) -> Waits[T]:
        """Do something, again while the database is being written."""
        deadline = time.monotonic() + _PATIENCE
        while True:
            self._trouble.clear()
            late = time.monotonic() >= deadline
            try:
                result = act()
            except ConversationError as exc:
                if late or not _is_busy(exc):
                    raise
            else:
                if late or not any(map(_is_busy, self._trouble)):
                    for each in self._trouble:
                        _log.debug("%s", each)
                    return result
            yield Wait(_PAUSE)


def session_info(summary: ConversationSummary, conversation: Conversation | None) -> SessionInfo:
    """Return what is told of a session; None is one that cannot be read."""
    records = () if conversation is None else conversation.records
    said = [record for record in records if isinstance(record, Prompt) or _has_text(record)]
    return SessionInfo(
        id=summary.id,
        created_at=_iso(summary.created),
        last_active=_iso(summary.updated or None),
        message_count=len(said),
        title=summary.title,
    )


def _has_text(record: object) -> bool:
    return isinstance(record, Answer) and bool(record.text)


def _iso(milliseconds: int | None) -> str:
    if milliseconds is None:
        return ""
    try:
        return datetime.fromtimestamp(milliseconds / 1000, UTC).isoformat(timespec="milliseconds")
    except (OverflowError, OSError, ValueError):  # no time that a calendar has
        return ""


def _is_busy(error: ConversationError) -> bool:
    cause = error.__cause__
    return isinstance(cause, sqlite3.OperationalError) and "locked" in str(cause)
