"""What is written to the log while a test's block lasts."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from sortie.telemetry.log.logger import Level, Values, sent_to


@contextmanager
def captured_log() -> Iterator[list[dict[str, Any]]]:
    """Collect events as their values, with their name as ``event`` and their ``level``."""
    written: list[dict[str, Any]] = []

    def write(level: Level, event: str, values: Values) -> None:
        written.append({"event": event, "level": level, **values})

    with sent_to(write):
        yield written
