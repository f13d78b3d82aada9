"""Small JSON files of sessions, read with a bound and without trust."""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

from sortie.kiro.conversations.records import ConversationError


def read_bytes(path: str, limit: int) -> bytes:
    """Return what a regular file holds. Raises ConversationError for more than ``limit`` bytes."""
    try:
        # NONBLOCK: opening a FIFO without it waits for a writer.
        fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        with open(fd, "rb") as file:
            found = os.fstat(fd)
            if not stat.S_ISREG(found.st_mode):
                raise ConversationError(f"{path} is no regular file")
            content = file.read(min(limit, found.st_size) + 1)
    except OSError as exc:
        raise ConversationError(f"{path} cannot be read: {exc.strerror or exc}") from exc
    if len(content) > limit:
        raise ConversationError(f"{path} is larger than {limit} bytes")
    return content


def read_object(path: str, limit: int) -> Mapping[str, Any]:
    """Return the JSON object in a file. Raises ConversationError where there is none."""
    found = object_in(read_bytes(path, limit))
    if found is None:
        raise ConversationError(f"{path} holds no JSON object")
    return found


def read_lines(path: str, limit: int) -> Iterator[Mapping[str, Any]]:
    """Return the JSON objects in a file's lines; a line that is none, or not whole yet, is not.

    A file that is not there has no lines. Raises ConversationError as ``read_bytes`` does.
    """
    if os.path.lexists(path):
        yield from lines_in(read_bytes(path, limit))


def lines_in(content: bytes) -> Iterator[Mapping[str, Any]]:
    """Return the JSON objects in lines, as ``read_lines`` does."""
    return (found for line in content.split(b"\n") if (found := object_in(line)) is not None)


def object_in(text: bytes) -> Mapping[str, Any] | None:
    """Return the JSON object that a text is, None where it is none."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def milliseconds(value: object) -> int | None:
    """Return a time as milliseconds: from RFC 3339, or Unix seconds, milliseconds or nanoseconds.

    Which unit a number is in shows by its size; between 1973 and 5138 only one is possible.
    """
    if isinstance(value, bool):
        return None
    if isinstance(value, int | float):
        return _scaled(value)
    if not isinstance(value, str):
        return None
    try:
        read = datetime.fromisoformat(value.strip())
    except ValueError:
        return None
    moment = read if read.tzinfo is not None else read.replace(tzinfo=UTC)
    return int(moment.timestamp() * 1000)


def _scaled(number: float) -> int | None:
    if not 0 < number < 10**20:
        return None
    if number < 10**11:
        return int(number * 1000)
    return int(number) if number < 10**14 else int(number // 10**6)


def names_in(folder: str) -> list[str]:
    """Return the names in a folder, in order; none where it cannot be listed."""
    try:
        return sorted(os.listdir(folder))
    except OSError:
        return []
