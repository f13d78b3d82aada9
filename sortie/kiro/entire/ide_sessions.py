"""Where Kiro IDE keeps its sessions, and which of a directory is the newest."""

from __future__ import annotations

import base64
import json
import os
import sys
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from sortie.acp import values
from sortie.kiro.conversations.files import milliseconds
from sortie.kiro.entire.repository import EntireError, read_file


def newest_ide_session(root: str, environment: Mapping[str, str]) -> tuple[int, str] | None:
    """Return when Kiro IDE changed its newest session of a directory, in milliseconds, and its
    file; the newest is the one that was begun last by its list of sessions."""
    for folder in _ide_folders(os.path.realpath(root), environment):
        try:
            sessions = json.loads(read_file(os.path.join(folder, "sessions.json")))
        except (OSError, ValueError, RecursionError, EntireError):
            continue
        found = list(_ide_sessions(folder, sessions))
        if found:
            return max(found)[1:]
    return None


def _ide_folders(root: str, environment: Mapping[str, str]) -> Iterable[str]:
    home = environment.get("HOME") or os.path.expanduser("~")
    if sys.platform == "darwin":
        data = os.path.join(home, "Library", "Application Support")
    else:
        data = environment.get("XDG_CONFIG_HOME") or os.path.join(home, ".config")
    above = os.path.join(
        data, "Kiro", "User", "globalStorage", "kiro.kiroagent", "workspace-sessions"
    )
    plain = base64.b64encode(os.fsencode(root))
    for name in (plain, base64.urlsafe_b64encode(os.fsencode(root)), plain.replace(b"=", b"_")):
        yield os.path.join(above, name.decode().replace("/", "_"))
        yield os.path.join(above, name.decode().rstrip("=").replace("/", "_"))


def _ide_sessions(folder: str, sessions: object) -> Iterator[tuple[int, int, str]]:
    """Yield when each session was begun and last changed, and its file."""
    for session in values.items(sessions):
        identity = values.text(session, "sessionId")
        if identity is None or "/" in identity:
            continue
        path = os.path.join(folder, f"{identity}.json")
        if os.path.isfile(path):
            changed = os.stat(path).st_mtime_ns // 1_000_000
            yield _created(session), changed, path


def _created(session: Mapping[str, Any]) -> int:
    """Return when a session was begun, in milliseconds; 0 where its entry does not say so."""
    date = session.get("dateCreated")
    if isinstance(date, str) and date.isascii() and date.isdecimal():
        date = int(date[:20])
    return milliseconds(date) or 0
