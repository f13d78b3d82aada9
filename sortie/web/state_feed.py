"""The daemon's state as live events: ``state`` is all of it, ``changes`` what is different.

``changes`` has ``state``, a part of the document of ``/api/v1/state``, and ``removed``. Each field
in it takes the place of what was there, but for the lists that have an entry for each issue: there
an entry takes the place of the one with the same ``issue_id``, or is new, and ``removed`` names the
issues whose entries are gone. So one event is small, however many issues there are.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from dataclasses import fields
from typing import Any

from msgspec.structs import replace

from sortie.web.broadcaster import Message
from sortie.web.redaction import Secrets, json_bytes, without_secrets
from sortie.web.state import StateView, to_json

BY_ISSUE = ("running", "waiting", "held", "kept", "watched")
"""The lists that have an entry for each issue."""

_SENT_WHOLE = tuple(
    field.name for field in fields(StateView) if field.name not in (*BY_ISSUE, "generated_at")
)


class StateFeed:
    """A feed of what ``look`` returns, without secrets."""

    def __init__(self, look: Callable[[], StateView], secrets: Secrets = frozenset) -> None:
        self._look = look
        self._secrets = secrets
        self._seen: StateView | None = None

    def changes(self) -> Sequence[Message]:
        """See Feed."""
        before, self._seen = self._seen, self._look()
        if before is None:
            return ()
        return self._clean(_differences(before, self._seen))

    def whole(self) -> Sequence[Message]:
        """See Feed."""
        seen = self._seen if self._seen is not None else self._look()
        return self._clean((Message(event="state", data=to_json(seen)),))

    def _clean(self, messages: Sequence[Message]) -> Sequence[Message]:
        return tuple(
            replace(each, data=without_secrets(each.data, self._secrets())) for each in messages
        )


def _differences(before: StateView, now: StateView) -> Sequence[Message]:
    named = {name for name in _SENT_WHOLE if getattr(before, name) != getattr(now, name)}
    put: dict[str, Any] = {}
    removed: dict[str, list[str]] = {}
    for name in BY_ISSUE:
        old = {row.issue_id: row for row in getattr(before, name)}
        new = {row.issue_id: row for row in getattr(now, name)}
        if rows := tuple(row for key, row in new.items() if old.get(key) != row):
            put[name] = rows
        if gone := [key for key in old if key not in new]:
            removed[name] = gone
    if not (named or put or removed):
        return ()
    part = to_json(dataclasses.replace(now, **put), {"generated_at", *named, *put})
    data = b'{"state":%b,"removed":%b}' % (part, json_bytes(removed))
    return (Message(event="changes", data=data),)
