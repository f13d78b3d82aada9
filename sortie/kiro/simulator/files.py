"""JSON files of sessions, as the simulator writes them."""

from __future__ import annotations

import json
import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any


def read_document(path: str) -> dict[str, Any] | None:
    """Return the JSON object in a file; None where there is none, or no such file."""
    try:
        with open(path, "rb") as file:
            found = json.load(file)
    except (FileNotFoundError, NotADirectoryError, ValueError):
        return None
    return found if isinstance(found, dict) else None


def write_document(path: str, document: Mapping[str, object]) -> None:
    """Write a file so that no reader sees half of it. Raises OSError."""
    temporary = f"{path}.{os.getpid()}"
    with open(temporary, "w", encoding="utf-8") as file:
        json.dump(document, file)
    os.replace(temporary, path)


def append_lines(path: str, lines: Iterable[Mapping[str, object]]) -> None:
    """Append lines of JSON to a file, in one write. Raises OSError."""
    with open(path, "a", encoding="utf-8") as file:
        file.write("".join(json.dumps(line) + "\n" for line in lines))
