"""What Kiro's hooks mean for Entire: when a session begins, and when a turn begins and ends."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any

from sortie.json_rpc import values
from sortie.kiro.entire.repository import EntireError, EntireRepository, write_file
from sortie.kiro.entire.transcripts import EMPTY, Transcript, native

SESSION_START, TURN_START, TURN_END = 1, 2, 3
_WITHOUT_EVENT = frozenset({"pre-tool-use", "post-tool-use"})


def event_of(
    hook: str, payload: bytes, repository: EntireRepository, environment: Mapping[str, str]
) -> dict[str, Any] | None:
    """Return the event that a hook means; None where it means none.

    The payload may be empty, as Kiro IDE has none. At the end of a turn Kiro's own record of the
    session is copied into the repository. Raises EntireError, and OSError where it cannot be.
    """
    told = _payload(payload)
    match hook:
        case "agent-spawn":
            return _event(SESSION_START, repository, repository.begin_session())
        case "user-prompt-submit":
            session = repository.active_session() or repository.begin_session()
            prompt = values.text(told, "prompt") or environment.get("USER_PROMPT", "")
            return {**_event(TURN_START, repository, session), "prompt": prompt}
        case "stop":
            session = repository.active_session() or repository.begin_session()
            directory = values.text(told, "cwd") or repository.root
            turn = _turn(session, repository, native(directory, environment))
            return _event(TURN_END, repository, session) | turn
        case _ if hook in _WITHOUT_EVENT:
            return None
        case _:
            raise EntireError(f"there is no hook {hook!r}")


def _payload(payload: bytes) -> Mapping[str, Any]:
    if not payload.strip():
        return {}
    try:
        told = json.loads(payload)
    except (ValueError, RecursionError) as exc:
        raise EntireError(f"the hook's payload is no JSON: {exc}") from None
    if not isinstance(told, dict):
        raise EntireError("the hook's payload is no JSON object")
    return told


def _event(kind: int, repository: EntireRepository, session: str) -> dict[str, Any]:
    return {
        "type": kind,
        "session_id": session,
        "session_ref": repository.session_file(session),
        "timestamp": datetime.now(UTC).isoformat().replace("+00:00", "Z"),
    }


def _turn(session: str, repository: EntireRepository, content: bytes | None) -> dict[str, Any]:
    """Record a session as Kiro has it, and return what the model said last."""
    path = repository.session_file(session)
    if content is None:
        with suppress(FileNotFoundError), open(path, "rb"):
            return {}
        content = EMPTY
    write_file(path, content)
    answer = Transcript(content).summary()
    return {} if answer is None else {"response_message": answer}
