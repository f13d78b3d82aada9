"""Where a conversation is kept, and which one it is."""

from __future__ import annotations

import os
import sys
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

NEWEST = "newest"
"""In place of an id: the conversation of the directory that was changed last."""

MADE_BY = "made_by"
"""The field of a kept conversation by which the simulator knows its own; Kiro has none like it."""

CHAT, ACP = "sortie-kiro-sim chat", "sortie-kiro-sim acp"
"""What stands in that field."""


class StoreTrouble(Exception):
    """The conversation could not be kept, found or deleted."""


class Keeping:
    """A directory's conversation: ``session`` is "" for a new one, NEWEST, or an id.

    An id that is not there yet is the new one's.
    """

    def __init__(
        self,
        environment: Mapping[str, str],
        directory: str,
        *,
        made_by: str = CHAT,
        session: str = "",
    ) -> None:
        self.environment = environment
        self.directory = directory
        self.made_by = made_by
        self.session = session

    @property
    def database(self) -> str:
        """The file of engine v1."""
        home = self.environment.get("HOME") or os.path.expanduser("~")
        default = os.path.join(home, ".local", "share")
        if sys.platform == "darwin":
            default = os.path.join(home, "Library", "Application Support")
        data = self.environment.get("XDG_DATA_HOME", "")
        return os.path.join(data if os.path.isabs(data) else default, "kiro-cli", "data.sqlite3")

    @property
    def sessions(self) -> str:
        """The folder of engines v2 and v3."""
        return os.path.join(kiro_home(self.environment), "sessions")


def kiro_home(environment: Mapping[str, str]) -> str:
    """Return the user's folder of Kiro's own files."""
    home = environment.get("HOME") or os.path.expanduser("~")
    return environment.get("KIRO_HOME") or os.path.join(home, ".kiro")


def is_own(document: Mapping[str, object]) -> bool:
    """Tell whether a kept conversation is the simulator's, and not a real Kiro's."""
    return document.get(MADE_BY) in (CHAT, ACP)


def timestamp(nanoseconds: int) -> str:
    """Return a time as the files have it: RFC 3339 with milliseconds."""
    seconds, rest = divmod(nanoseconds, 1_000_000_000)
    return f"{time.strftime('%Y-%m-%dT%H:%M:%S', time.gmtime(seconds))}.{rest // 1_000_000:03}Z"


def title_of(prompt: str) -> str:
    """Return what a conversation is called that begins with a prompt."""
    return " ".join(prompt.split())[:60]
