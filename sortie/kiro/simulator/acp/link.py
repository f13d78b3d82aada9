"""The messages of one client, over a pair of descriptors.

Rule 1: messages are taken in their order, but for a cancellation of the turn that runs, which is
taken as soon as the turn waits. Rule 2: nothing is held back: every message is written at once.
"""

from __future__ import annotations

import os
import select
import time
from collections import deque
from collections.abc import Mapping
from typing import Any

from sortie.acp import values, wire
from sortie.acp.wire import ErrorAnswer, Incoming, MessageReader, Notice, Result

_CHUNK = 1 << 16


class Cancelled(Exception):
    """The client has cancelled the turn that runs."""


class ClientGone(Exception):
    """Nobody is at the other end any more."""


class Link:
    """See the module. ``turn`` is the session whose turn runs, "" while none does."""

    def __init__(self, given: int, out: int) -> None:
        self.turn = ""
        self._given = given
        self._out = out
        self._reader = MessageReader()
        self._waiting: deque[Incoming] = deque()
        self._asked = 0
        self._at_end = False

    def next(self) -> Incoming | None:
        """Return the next message, None where nothing comes any more."""
        while not self._waiting:
            if self._at_end:
                return None
            self._read(None)
        return self._waiting.popleft()

    def wait(self, seconds: float | None) -> None:
        """Let time pass, None for ever. Raises Cancelled and ClientGone."""
        end = None if seconds is None else time.monotonic() + seconds
        while True:
            self._look_for_cancel()
            left = None if end is None else end - time.monotonic()
            if left is not None and left <= 0:
                return
            self._read(left)

    def ask(self, method: str, params: Mapping[str, Any]) -> Result | ErrorAnswer:
        """Ask the client and return its answer. Raises Cancelled and ClientGone."""
        number, self._asked = self._asked, self._asked + 1
        self.write(wire.request(number, method, params))
        while True:
            for message in self._waiting:
                if not isinstance(message, Result | ErrorAnswer):
                    continue
                if type(message.id) is int and message.id == number:
                    self._waiting.remove(message)
                    return message
            self._look_for_cancel()
            self._read(None)

    def tell(self, method: str, params: Mapping[str, Any]) -> None:
        """Tell the client something. Raises ClientGone."""
        self.write(wire.notice(method, params))

    def write(self, data: bytes) -> None:
        """Write bytes. Raises ClientGone."""
        view = memoryview(data)
        try:
            while view:
                view = view[os.write(self._out, view) :]
        except OSError as error:
            raise ClientGone(str(error)) from error

    def _look_for_cancel(self) -> None:
        """Raise Cancelled where the turn that runs was, and ClientGone where nobody is left."""
        for message in list(self._waiting):
            if isinstance(message, Notice) and message.method == "session/cancel":
                self._waiting.remove(message)
                if self.turn and values.text(message.params, "sessionId") == self.turn:
                    raise Cancelled
        if self._at_end:
            raise ClientGone("stdin has ended")

    def _read(self, seconds: float | None) -> None:
        if not select.select([self._given], [], [], seconds)[0]:
            return
        chunk = os.read(self._given, _CHUNK)
        self._waiting += self._reader.feed(chunk) if chunk else self._reader.close()
        self._at_end = not chunk
