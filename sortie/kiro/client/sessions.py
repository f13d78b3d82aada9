"""The sessions that Kiro has kept for a directory: list them, find one, delete one."""

from __future__ import annotations

import logging

from sortie.kiro.client.errors import (
    CLIConnectionError,
    CLIJSONDecodeError,
    SessionNotFoundError,
)
from sortie.kiro.client.kept import KeptConversations, session_info
from sortie.kiro.client.messages import SessionInfo
from sortie.kiro.client.waits import Wait, Waits
from sortie.kiro.conversations import ConversationError, ConversationSummary

_RAW = 200

_log = logging.getLogger("sortie.kiro")


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
    summaries = yield from kept.summaries()
    trouble = kept.trouble()
    wanted = next((each for each in summaries if each.id == session_id), None)
    if wanted is None:
        if trouble is not None:
            raise CLIConnectionError(f"session {session_id} cannot be looked up: {trouble}")
        raise (yield from _not_found(kept, session_id))
    return wanted


def delete_session(kept: KeptConversations, session_id: str) -> Waits[None]:
    """Delete a session, of whichever directory.

    Raises SessionNotFoundError where there is none, CLIConnectionError where it cannot be deleted.
    """
    summaries = yield from kept.everywhere()
    trouble = kept.trouble()
    wanted = [summary for summary in summaries if summary.id == session_id]
    if not wanted:
        if trouble is not None:
            raise CLIConnectionError(f"session {session_id} cannot be looked up: {trouble}")
        raise SessionNotFoundError(f"there is no session {session_id}")
    try:
        for summary in wanted:
            yield from kept.delete(summary)
    except ConversationError as exc:
        raise CLIConnectionError(f"session {session_id} cannot be deleted: {exc}") from exc


def _not_found(kept: KeptConversations, session_id: str) -> Waits[SessionNotFoundError]:
    for summary in (yield from kept.everywhere()):
        if summary.id == session_id:
            return SessionNotFoundError(
                f"session {session_id} is of {summary.directory}, and Kiro goes on with sessions of"
                f" its own directory only, {kept.directory}; set cwd"
            )
    return SessionNotFoundError(f"there is no session {session_id} in {kept.directory}")


def _beginning(summary: ConversationSummary) -> str:
    """Return how a damaged session's file begins; "" for one in a database."""
    if summary.engine == "v1":
        return ""
    try:
        with open(summary.place, encoding="utf-8", errors="replace") as file:
            return file.read(_RAW)
    except OSError:
        return ""
