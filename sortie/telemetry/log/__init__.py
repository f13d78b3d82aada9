"""The log: one event a line, on stderr, as text or JSON; one sink makes lines of facts.

Rule 1: an event is one line, whatever its values hold.
Rule 2: a secret given to ``configure`` or ``hide`` appears in no value.
Rule 3: a stream that cannot be written to does not stop the daemon, and lost lines are counted.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Collection, MutableMapping
from contextvars import ContextVar
from functools import partial
from typing import Any, Literal, TextIO

from sortie.telemetry.log.output import LogOutput
from sortie.telemetry.log.renderers import JsonRenderer, TerminalRenderer, TextRenderer
from sortie.telemetry.log.sanitize import Sanitizer
from sortie.telemetry.log.sink import LogSink
from sortie.telemetry.log.structlog_alone import structlog


class _Router(logging.Handler):
    """Turns a library's record into one ``library.logged`` event."""

    def emit(self, record: logging.LogRecord) -> None:
        try:
            message = record.getMessage()
        except (TypeError, ValueError):  # the library's arguments do not fit its format
            message = str(record.msg)
        log = structlog.get_logger()
        level = logging.ERROR if record.levelno >= logging.ERROR else logging.WARNING
        log.log(
            level,
            "library.logged",
            library=record.name,
            message=message,
            exc_info=record.exc_info,
        )


def route_libraries() -> None:
    """Make our log the place where libraries' warnings go; calling it again changes nothing."""
    root = logging.getLogger()
    for handler in [h for h in root.handlers if isinstance(h, _Router)]:
        root.removeHandler(handler)
    root.addHandler(_Router(level=logging.WARNING))
    root.setLevel(logging.WARNING)
    logging.captureWarnings(True)


__all__ = ["WORKFLOW", "LogFormat", "LogOutput", "LogSink", "configure", "hide"]

WORKFLOW: ContextVar[str] = ContextVar("workflow", default="")
"""The name of the workflow that a task works for, where several share the process."""

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
    """Send structlog's events, and warnings of libraries, to a stream as lines.

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
    stamp = structlog.processors.TimeStamper(fmt="iso", utc=True, key="time")
    sanitizer = Sanitizer(secrets)
    output = LogOutput(stream, partial(_loss_notice, stamp, renderer))
    structlog.configure(
        processors=[
            _with_workflow,
            structlog.processors.add_log_level,
            stamp,
            structlog.processors.format_exc_info,
            sanitizer,
            renderer,
        ],
        wrapper_class=structlog.make_filtering_bound_logger(level),
        logger_factory=lambda *_names: _LineLogger(output),
        cache_logger_on_first_use=False,
    )
    route_libraries()
    return output


def hide(secrets: Collection[str]) -> None:
    """Have these secrets, and no others, appear in no value from now on."""
    for processor in structlog.get_config()["processors"]:
        if isinstance(processor, Sanitizer):
            processor.hide(secrets)


def _with_workflow(
    _logger: object, _method: str, event: MutableMapping[str, Any]
) -> MutableMapping[str, Any]:
    """Name the workflow that an event is of, where there are several; its file is ``file`` then."""
    name = WORKFLOW.get()
    if not name:
        return event
    if "workflow" in event:
        event["file"] = event.pop("workflow")
    return {"event": event.pop("event"), "workflow": name, **event}


class _LineLogger:
    """What structlog calls with a rendered line."""

    def __init__(self, output: LogOutput) -> None:
        self._output = output

    def msg(self, line: str) -> None:
        self._output.write(line)

    debug = info = warning = error = critical = msg


def _loss_notice(stamp: structlog.processors.TimeStamper, renderer: Renderer, count: int) -> str:
    event = {"level": "warning", "event": "log.lost", "lines": count}
    return renderer(None, "warning", stamp(None, "warning", event))


def _is_terminal(stream: TextIO | None) -> bool:
    try:
        return stream is not None and stream.isatty()
    except ValueError:  # closed
        return False
