"""Logs of checks as plain text: their last lines, without what only a terminal understands."""

from __future__ import annotations

import re

from sortie.model.texts import CONTROL

LOG_BYTES = 1024 * 1024
"""Bytes of a log that are kept while it is read: its last ones."""

_LINE_LIMIT = 2000

_ESCAPES = re.compile(
    r"\x1b\[[0-?]*[ -/]*[@-~]"  # colours and moves
    r"|\x1b[\]PX^_][^\x07\x1b]*(?:\x07|\x1b\\|\Z)"  # titles, links
    r"|\x1b[ -/]*[0-~]?"
    r"|\x9b[0-?]*[ -/]*[@-~]"
)
_SECTION = re.compile(r"^section_(?:start|end):\d+:\S+?\r?$")  # GitLab's folds


def last_lines(text: bytes | str, lines: int) -> str:
    """Return the last lines of a log; of a line that was written over, what stood there at last."""
    decoded = text.decode("utf-8", "replace") if isinstance(text, bytes) else text
    plain = _ESCAPES.sub("", decoded.removeprefix("\ufeff"))
    found = [_line(line) for line in plain.split("\n") if not _SECTION.match(line)]
    while found and not found[-1]:
        found.pop()
    return "\n".join(found[-lines:] if lines > 0 else [])


def _line(line: str) -> str:
    written = line.rstrip("\r").rpartition("\r")[2]
    clean = CONTROL.sub("", written).rstrip()
    return clean if len(clean) <= _LINE_LIMIT else f"{clean[:_LINE_LIMIT]} [...]"
