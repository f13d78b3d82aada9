"""Where kiro-cli keeps its conversations on this machine."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping


class KiroPlaces:
    """The database of engine v1, and the folder below which v2 and v3 keep their sessions.

    A plain class, because the simulator starts without ``dataclasses`` and ``typing``.
    """

    def __init__(self, *, database: str, sessions: str) -> None:
        self.database = database
        self.sessions = sessions

    @classmethod
    def of(cls, environment: Mapping[str, str], *, macos: bool | None = None) -> KiroPlaces:
        """Return the places that this environment means.

        ``KIRO_HOME`` moves the sessions, and ``XDG_DATA_HOME`` the database; a relative path in it
        is ignored (XDG Base Directory Specification).
        """
        home = environment.get("HOME") or os.path.expanduser("~")
        on_macos = sys.platform == "darwin" if macos is None else macos
        default = ("Library", "Application Support") if on_macos else (".local", "share")
        named = environment.get("XDG_DATA_HOME", "")
        data = named if os.path.isabs(named) else os.path.join(home, *default)
        kiro = environment.get("KIRO_HOME") or os.path.join(home, ".kiro")
        return cls(
            database=os.path.join(data, "kiro-cli", "data.sqlite3"),
            sessions=os.path.join(kiro, "sessions"),
        )
