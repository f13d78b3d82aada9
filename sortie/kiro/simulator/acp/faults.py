"""What no agent should write, and some have: each is asked for by the directive ``acp_fault``."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from typing import Any

from sortie.acp import wire
from sortie.kiro.simulator.acp.link import Link

_DEEP = b"[" * 10_000
_JUNK = (b"", b"no message", b"[1, [2]]", b"{}", b"\xff\xfe", b"null", _DEEP, b'{"method": 7}')


def _junk(session: str) -> Iterator[bytes]:
    for line in _JUNK:
        yield line + b"\n"
    odd: tuple[Any, ...] = ({"update": [{}]}, 7, {"update": {"sessionUpdate": "tool_call"}})
    for update in odd:
        params: Any = {"sessionId": session, **update} if isinstance(update, dict) else update
        yield wire.notice("session/update", params)


def _unknown(session: str) -> Iterator[bytes]:
    for kind in ("new_thing", ""):
        update = {"sessionUpdate": kind, "of": "tomorrow"}
        yield wire.notice("session/update", {"sessionId": session, "update": update})
    call = {"sessionUpdate": "tool_call", "toolCallId": "n", "kind": "dream", "status": "dreaming"}
    yield wire.notice("session/update", {"sessionId": session, "update": call})
    yield wire.notice("_kiro.dev/new/thing", {"sessionId": session})
    yield wire.notice("session/new_thing", {"sessionId": "another"})
    yield wire.request("what", "session/what", {"sessionId": session})


def _repeated_ids(session: str) -> Iterator[bytes]:
    for status in ("pending", "completed", "pending", "failed", "completed"):
        call = {"sessionUpdate": "tool_call", "toolCallId": "r", "title": "again", "status": status}
        yield wire.notice("session/update", {"sessionId": session, "update": call})
    for path in ("a", "b"):
        yield wire.request("r", "fs/read_text_file", {"sessionId": session, "path": path})


def _unasked(_session: str) -> Iterator[bytes]:
    for number in (0, 1, 2, 999, "1", None, -1):
        yield wire.result(number, {"stopReason": "end_turn"})
        yield wire.error(number, 1, "no")


_FAULTS: dict[str, Callable[[str], Iterator[bytes]]] = {
    "junk": _junk,
    "unknown": _unknown,
    "repeated_ids": _repeated_ids,
    "unasked": _unasked,
}


def commit(fault: str, link: Link, session: str, words: str) -> None:
    """Write what was asked for; ``unterminated`` says the words and ends the process.

    Raises ClientGone.
    """
    if fault == "unterminated":
        said = {"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": words}}
        line = wire.notice("session/update", {"sessionId": session, "update": said})
        link.write(line.removesuffix(b"\n"))
        os._exit(1)
    if fault != "none":
        link.write(b"".join(_FAULTS[fault](session)))
