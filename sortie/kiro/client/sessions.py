"""The conversations that Kiro has kept of a directory: read without a thread, listed, deleted.

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

from sortie.kiro.client.errors import (
    CLIConnectionError,
    CLIJSONDecodeError,
    SessionNotFoundError,
)
from sortie.kiro.client.messages import SessionInfo
from sortie.kiro.client.waits import Wait, Waits
from sortie.kiro.conversations import (
    Conversation,
    ConversationError,
    ConversationStores,
    ConversationSummary,
    KiroPlaces,
    ModelAnswer,
    UserPrompt,
)

DOCUMENT_LIMIT = 16 * 1024 * 1024
"""Bytes of one document that are read."""

_NO_LIMIT = 1 << 40
_DATABASE_TIMEOUT = 1.0  # seconds for a database that is being written
_PAUSE = 0.02
_BEGINNING = 200  # characters of a damaged file
_log = logging.getLogger("sortie.kiro")

T = TypeVar("T")


class KeptConversations:
    """The conversations of one directory, in whichever store they are."""

    def __init__(self, directory: str, environment: Mapping[str, str]) -> None:
        self.directory = directory
        self._trouble: list[ConversationError] = []
        self._places = KiroPlaces.of(environment)
        self._stores = ConversationStores(
            self._places, limit=DOCUMENT_LIMIT, patience=0.0, on_trouble=self._trouble.append
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
        deadline = time.monotonic() + _DATABASE_TIMEOUT
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
    """Return the public form of a session; ``conversation`` is None where it cannot be read."""
    records = () if conversation is None else conversation.records
    said = [record for record in records if isinstance(record, UserPrompt) or _has_text(record)]
    return SessionInfo(
        id=summary.id,
        created_at=_iso(summary.created),
        last_active=_iso(summary.updated or None),
        message_count=len(said),
        title=summary.title,
    )


def _has_text(record: object) -> bool:
    return isinstance(record, ModelAnswer) and bool(record.text)


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


def list_sessions(kept: KeptConversations) -> Waits[list[SessionInfo]]:
    """Return the sessions of the directory, the newest first.

    Kiro's own ``--list-sessions`` does not know those of headless turns, so its stores are read.
    Raises CLIConnectionError where none of them can be.
    """
    summaries = yield from kept.summaries()
    if not summaries and (trouble := kept.trouble()) is not None:
        raise CLIConnectionError(f"the sessions cannot be listed: {trouble}") from trouble
    found: list[SessionInfo] = []
    for summary in summaries:
        yield Wait(0)  # others may run between two of them
        conversation = None
        try:
            conversation = yield from kept.load(summary)
        except ConversationError as exc:
            _log.warning("a session cannot be read: %s", exc)
        found.append(session_info(summary, conversation))
    return found


def is_newest(kept: KeptConversations, session_id: str) -> Waits[bool]:
    """Tell whether a session of the directory is its newest.

    Raises SessionNotFoundError where it is none of the directory, and CLIConnectionError where
    that cannot be told.
    """
    wanted = yield from find_session(kept, session_id)
    return wanted == (yield from kept.summaries())[0]


def check_session(kept: KeptConversations, session_id: str) -> Waits[None]:
    """Raise CLIJSONDecodeError where a session is damaged, and what ``is_newest`` raises."""
    wanted = yield from find_session(kept, session_id)
    try:
        yield from kept.check(wanted)
    except ConversationError as exc:
        raise CLIJSONDecodeError(
            f"session {session_id} is damaged: {exc}", _beginning(wanted)
        ) from exc


def find_session(kept: KeptConversations, session_id: str) -> Waits[ConversationSummary]:
    """Return a session of the directory. Raises what ``is_newest`` raises."""
    for summary in (yield from kept.summaries()):
        if summary.id == session_id:
            return summary
    _require_readable(kept, session_id)
    for summary in (yield from kept.everywhere()):
        if summary.id == session_id:
            raise SessionNotFoundError(
                f"session {session_id} is of {summary.directory}, and Kiro goes on with sessions of"
                f" its own directory only, {kept.directory}; set cwd"
            )
    raise SessionNotFoundError(f"there is no session {session_id} in {kept.directory}")


def delete_session(kept: KeptConversations, session_id: str) -> Waits[None]:
    """Delete a session, of whichever directory.

    Raises SessionNotFoundError where there is none, CLIConnectionError where it cannot be deleted.
    """
    wanted = [each for each in (yield from kept.everywhere()) if each.id == session_id]
    if not wanted:
        _require_readable(kept, session_id)
        raise SessionNotFoundError(f"there is no session {session_id}")
    try:
        for summary in wanted:
            yield from kept.delete(summary)
    except ConversationError as exc:
        raise CLIConnectionError(f"session {session_id} cannot be deleted: {exc}") from exc


def _require_readable(kept: KeptConversations, session_id: str) -> None:
    """Raise CLIConnectionError where a store could not be listed the last time."""
    if (trouble := kept.trouble()) is not None:
        raise CLIConnectionError(f"session {session_id} cannot be looked up: {trouble}")


def _beginning(summary: ConversationSummary) -> str:
    """Return how a damaged session's file begins; "" for one in a database."""
    if summary.engine == "v1":
        return ""
    try:
        with open(summary.place, encoding="utf-8", errors="replace") as file:
            return file.read(_BEGINNING)
    except OSError:
        return ""
