"""Browsers that are signed in: one-time codes that open sessions, and the sessions.

Rule 1: what is kept of a code or session is its hash, by which it is found; a look in this memory,
or at how long a comparison takes, gives nobody one.
Rule 2: a code opens one session; it, and a session, end after a time and with the daemon.
Rule 3: there are so many of each at most; a newcomer ends the oldest.
"""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Callable

CODE_SECONDS, SESSION_SECONDS = 120.0, 12 * 3600.0
"""How long a code and a session last."""

MOST_CODES, MOST_SESSIONS = 16, 64

_BYTES = 32
_LONGEST = 128


class _Secrets:
    """Random words that are valid for a time."""

    def __init__(self, seconds: float, most: int) -> None:
        self._seconds = seconds
        self._most = most
        self._ends: dict[bytes, float] = {}

    def make(self, now: float) -> str:
        self._ends = {digest: end for digest, end in self._ends.items() if end > now}
        while len(self._ends) >= self._most:
            del self._ends[next(iter(self._ends))]
        word = secrets.token_urlsafe(_BYTES)
        self._ends[_digest(word)] = now + self._seconds
        return word

    def holds(self, word: str, now: float) -> bool:
        return len(word) <= _LONGEST and self._ends.get(_digest(word), now) > now

    def end(self, word: str) -> None:
        if len(word) <= _LONGEST:
            self._ends.pop(_digest(word), None)


class Sessions:
    """Codes and sessions; ``clock`` gives seconds that never go back.

    ``cookie`` is the name of the cookie that holds a session. Cookies do not tell ports apart, so
    each daemon has a name of its own: two on one machine would sign each other's browsers out.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self.cookie = f"sortie_{secrets.token_hex(4)}"
        self._clock = clock
        self._codes = _Secrets(CODE_SECONDS, MOST_CODES)
        self._sessions = _Secrets(SESSION_SECONDS, MOST_SESSIONS)

    def make_code(self) -> str:
        """Return a code that opens one session."""
        return self._codes.make(self._clock())

    def open(self, code: str) -> str | None:
        """Return a new session for a code, which is used up; None where the code is not valid."""
        now = self._clock()
        if not self._codes.holds(code, now):
            return None
        self._codes.end(code)
        return self._sessions.make(now)

    def is_open(self, session: str) -> bool:
        """Tell whether a session lasts."""
        return self._sessions.holds(session, self._clock())

    def close(self, session: str) -> None:
        """End a session; safe for anything."""
        self._sessions.end(session)


def _digest(word: str) -> bytes:
    return hashlib.sha256(word.encode("utf-8", "surrogatepass")).digest()
