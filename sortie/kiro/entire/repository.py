"""Where a repository's sessions are recorded, and how its files are written."""

from __future__ import annotations

import os
import re
import stat
from contextlib import suppress

STREAM_LIMIT = 10 * 1024 * 1024
"""Bytes of one stream; the protocol allows no more."""

_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,199}\Z")


class EntireError(Exception):
    """A call failed; the message is its line on stderr."""


class EntireRepository:
    """A repository by its root, and the sessions recorded in it: ``.entire/tmp/<id>.json``."""

    def __init__(self, root: str) -> None:
        self.root = root
        self.sessions = os.path.join(root, ".entire", "tmp")
        self._active = os.path.join(self.sessions, "kiro-active-session")

    def session_file(self, session_id: str) -> str:
        """Return the file of a session. Raises EntireError for what can be no name."""
        return os.path.join(self.sessions, file_name(session_id))

    def active_session(self) -> str | None:
        """Return the id of the session that is under way, as far as it is known."""
        with suppress(OSError, UnicodeDecodeError):
            text = read_file(self._active, 1000).decode().strip()
            if _ID.match(text):
                return text
        return None

    def begin_session(self) -> str:
        """Make up the id of a new session and remember it."""
        session_id = os.urandom(16).hex()
        write_file(self._active, session_id.encode() + b"\n")
        return session_id

    def referenced(self, session_ref: str) -> str:
        """Return the file that a reference means: a path in the repository, or a session's id.

        Raises EntireError for any other.
        """
        return self._file(session_ref, self.root)

    def written(self, session_ref: str) -> str:
        """Return the file of a reference to write to, which lies in the sessions' directory."""
        return self._file(session_ref, self.sessions)

    def _file(self, session_ref: str, home: str) -> str:
        if not os.path.isabs(session_ref):
            return self.session_file(session_ref.removesuffix(".json"))
        parts = session_ref.split("/")
        inside = os.path.realpath(os.path.dirname(session_ref))
        allowed = os.path.realpath(home)
        if "." in parts or ".." in parts or os.path.commonpath([inside, allowed]) != allowed:
            raise EntireError(f"{session_ref} lies outside of {home}")
        return session_ref


def file_name(session_id: str) -> str:
    """Return the name of a session's file. Raises EntireError for what can be no name."""
    if not _ID.match(session_id):
        raise EntireError(f"{session_id!r} is no id of a session")
    return f"{session_id}.json"


def read_file(path: str, limit: int = STREAM_LIMIT) -> bytes:
    """Return what a regular file holds, no link. Raises OSError; EntireError where it is larger."""
    # NONBLOCK: opening a FIFO without it waits for a writer.
    fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    with open(fd, "rb") as file:
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            raise EntireError(f"{path} is no regular file")
        content = file.read(limit + 1)
    if len(content) > limit:
        raise EntireError(f"{path} is larger than {limit} bytes")
    return content


def write_file(path: str, content: bytes, mode: int = 0o600) -> None:
    """Write a file in one step, with its directories. Raises OSError."""
    os.makedirs(os.path.dirname(path), exist_ok=True)
    new = f"{path}.{os.getpid()}.new"
    try:
        fd = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, mode)
        with open(fd, "wb") as file:
            file.write(content)
        os.replace(new, path)
    except OSError:
        with suppress(OSError):
            os.unlink(new)
        raise
