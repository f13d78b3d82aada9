"""What a simulated turn does to files."""

from __future__ import annotations

import json
import os
import re
import time
from collections.abc import Mapping

NOTE_FILE = "SORTIE_DEMO.md"
FILE_CONTENT = "Written by the Kiro simulator.\n"
"""What a file holds that was asked for."""

_STATE_FILE = re.compile(r"(.+?\.md)\s+(.+)", re.DOTALL)
_FRONT_MATTER = re.compile(
    rb"\A(?:\xef\xbb\xbf)?---[ \t]*\r?\n(.*?)^---[ \t]*\r?$", re.DOTALL | re.MULTILINE
)
_STATE = re.compile(
    rb"^state:[ \t]*(?:\"[^\"\r\n]*\"|'[^'\r\n]*'|[^#\r\n]*?)(?=[ \t]*(?:#|\r?$))",
    re.MULTILINE,
)
_PLAIN_SCALAR = re.compile(r"[A-Za-z][A-Za-z0-9 _/-]*")


class ActionError(Exception):
    """A directive asks for something that cannot be done here."""


def append_note(title: str) -> None:
    """Append a line to the note in the current directory."""
    stamp = time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime())
    _append(NOTE_FILE, f"- {stamp}: {title}\n")


def write_file(what: str) -> None:
    """Write a file below the current directory: its name, and behind a blank its text."""
    name, _, text = what.partition(" ")
    here = os.path.realpath(os.getcwd())
    path = os.path.realpath(name)
    if os.path.commonpath([here, path]) != here or path == here:
        raise ActionError(f"write={name}: lies outside of {here}")
    os.makedirs(os.path.dirname(path), exist_ok=True)
    _replace(path, (text.replace("\\n", "\n") or FILE_CONTENT).encode())


def write_status(word: str) -> None:
    """Leave a word for Sortie."""
    os.makedirs(".sortie", exist_ok=True)
    _replace(os.path.join(".sortie", "status"), f"{word}\n".encode())


def count_turn() -> int:
    """Count the turns in the current directory; return how many there were before this one."""
    os.makedirs(".sortie", exist_ok=True)
    path = os.path.join(".sortie", "sim-turns")
    before = 0
    if os.path.exists(path):
        with open(path, encoding="ascii") as file:
            before = int(file.read())
    _replace(path, str(before + 1).encode())
    return before


def set_state(request: str) -> None:
    """Change the ``state:`` line of a Markdown issue, and nothing else, given ``FILE.md STATE``."""
    match = _STATE_FILE.fullmatch(request.strip())
    if match is None:
        raise ActionError(f"set_state={request}: is not of the form FILE.md STATE")
    path, state = os.path.realpath(match[1]), match[2].strip()
    with open(path, "rb") as file:
        content = file.read()
    front = _FRONT_MATTER.match(content)
    line = _STATE.search(content, front.start(1), front.end(1)) if front else None
    if line is None:
        raise ActionError(f"set_state={request}: {path} has no front matter with a state")
    value = state if _PLAIN_SCALAR.fullmatch(state) else json.dumps(state)
    replaced = b"state: " + value.encode()
    _replace(path, content[: line.start()] + replaced + content[line.end() :])


class Log:
    """A file that takes one JSON line for everything that happens; without a path, nothing."""

    def __init__(self, path: str, command: str, environment: Mapping[str, str]) -> None:
        self._path = path
        self._about = {
            "command": command,
            "pid": os.getpid(),
            "cwd": os.getcwd(),
            "run_id": environment.get("SORTIE_RUN_ID"),
        }

    def write(self, event: str, **more: object) -> None:
        """Append ``{"event", "command", "pid", "cwd", "run_id", "time", ...}``."""
        if self._path:
            line = {"event": event, **self._about, "time": time.time(), **more}
            _append(self._path, json.dumps(line) + "\n")


def _append(path: str, line: str) -> None:
    """Append in one write, so that lines of several writers do not mix."""
    number = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    try:
        os.write(number, line.encode(errors="replace"))
    finally:
        os.close(number)


def _replace(path: str, content: bytes) -> None:
    """Write a file so that no reader sees half of it; an existing one keeps its mode."""
    folder, name = os.path.split(path)
    temporary = os.path.join(folder, f".{name}.{os.getpid()}.tmp")
    mode = os.stat(path).st_mode & 0o777 if os.path.exists(path) else 0o644
    number = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, mode)
    with os.fdopen(number, "wb") as file:
        file.write(content)
    os.replace(temporary, path)
