"""Browsers that are signed in: one-time codes that open sessions, and the sessions.

Rule 1: only the hash of a code or session is kept, and it is found by its hash: neither a look in
this memory nor the time of a comparison gives one away.
Rule 2: a code opens one session; codes and sessions end after a time, and with the daemon.
Rule 3: the number of each is limited; a new one ends the oldest.
"""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Callable

CODE_SECONDS, SESSION_SECONDS = 120.0, 12 * 3600.0
"""How long a code and a session last."""

MOST_CODES, MOST_SESSIONS = 16, 64

_SECRET_BYTES = 32
_LONGEST_SECRET = 128


class _TimedSecrets:
    """Random secrets that are valid for a time; only their hashes are kept."""

    def __init__(self, seconds: float, most: int) -> None:
        self._seconds = seconds
        self._most = most
        self._ends: dict[bytes, float] = {}

    def make(self, now: float) -> str:
        self._ends = {digest: end for digest, end in self._ends.items() if end > now}
        while len(self._ends) >= self._most:
            del self._ends[next(iter(self._ends))]
        secret = secrets.token_urlsafe(_SECRET_BYTES)
        self._ends[_digest(secret)] = now + self._seconds
        return secret

    def holds(self, secret: str, now: float) -> bool:
        return len(secret) <= _LONGEST_SECRET and self._ends.get(_digest(secret), now) > now

    def end(self, secret: str) -> None:
        if len(secret) <= _LONGEST_SECRET:
            self._ends.pop(_digest(secret), None)


class BrowserSessions:
    """Codes and sessions; ``clock`` gives seconds that never go back.

    ``cookie`` is the name of the cookie that holds a session. Cookies do not tell ports apart, so
    each daemon has a name of its own: two on one machine would sign each other's browsers out.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self.cookie = f"sortie_{secrets.token_hex(4)}"
        self._clock = clock
        self._codes = _TimedSecrets(CODE_SECONDS, MOST_CODES)
        self._sessions = _TimedSecrets(SESSION_SECONDS, MOST_SESSIONS)

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


def _digest(secret: str) -> bytes:
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).digest()
