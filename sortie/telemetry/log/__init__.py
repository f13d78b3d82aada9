"""The log: one event a line, on stderr, as text or JSON; one sink makes facts into lines.

Rule 1: whatever a value holds, an event is one line.
Rule 2: a secret given to ``configure`` appears in no value.
Rule 3: a stream that cannot be written to stops neither the daemon nor the count of lost lines.
"""

from __future__ import annotations

import sys
from collections.abc import Collection
from datetime import UTC, datetime
from typing import Literal, TextIO

from sortie.telemetry.log.libraries import route_libraries
from sortie.telemetry.log.logger import (
    LEVELS,
    Destination,
    Level,
    Logger,
    Values,
    get_logger,
    send_to,
    with_traceback,
)
from sortie.telemetry.log.output import LogOutput
from sortie.telemetry.log.renderers import JsonRenderer, TerminalRenderer, TextRenderer
from sortie.telemetry.log.sanitize import Sanitizer
from sortie.telemetry.log.sink import LogSink

__all__ = ["LogFormat", "LogOutput", "LogSink", "Logger", "configure", "get_logger"]

LogFormat = Literal["text", "json"]
Renderer = JsonRenderer | TerminalRenderer | TextRenderer


def configure(
    level: str,
    line_format: LogFormat,
    stream: TextIO | None = None,
    terminal: bool | None = None,
    colours: bool = True,
    secrets: Collection[str] = (),
) -> LogOutput:
    """Send all events, and warnings of libraries, to a stream as lines.

    ``level`` is debug, info, warning or error. ``stream`` is stderr unless given. Text has a short
    form on a ``terminal``, which is looked up unless given, and there ``colours`` unless they are
    not wanted. Calling it again replaces what was configured before.
    """
    stream = sys.stderr if stream is None else stream
    if terminal is None:
        terminal = _is_terminal(stream)
    renderer: Renderer = TextRenderer()
    if line_format == "json":
        renderer = JsonRenderer()
    elif terminal:
        renderer = TerminalRenderer(colours=colours)
    output = LogOutput(stream, lambda count: renderer(_loss_notice(count)))
    send_to(_lines(level, Sanitizer(secrets), renderer, output))
    route_libraries()
    return output


def _lines(least: str, sanitizer: Sanitizer, renderer: Renderer, output: LogOutput) -> Destination:
    """Return what makes a line of each event that is at this level or above."""

    def write(level: Level, event: str, values: Values) -> None:
        if LEVELS[level] >= LEVELS[least]:
            fields = {"time": _now(), "level": level, "event": event} | with_traceback(values)
            output.write(renderer(sanitizer(fields)))

    return write


def _loss_notice(count: int) -> Values:
    return {"time": _now(), "level": "warning", "event": "log.lost", "lines": count}


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")


def _is_terminal(stream: TextIO | None) -> bool:
    try:
        return stream is not None and stream.isatty()
    except ValueError:  # closed
        return False
