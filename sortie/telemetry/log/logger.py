"""What writes to the log: an event and its values, which go where ``configure`` sends them.

Loggers of libraries for this are not used: to load the one that was takes a tenth of a daemon's
start, since it loads asyncio and what colours tracebacks.
"""

from __future__ import annotations

import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Literal

Level = Literal["debug", "info", "warning", "error"]
Values = dict[str, object]
Destination = Callable[[Level, str, Values], None]
"""Takes a level, the name of an event and its values."""

LEVELS: dict[str, int] = {"debug": 10, "info": 20, "warning": 30, "error": 40}
"""The levels and their order."""


class Logger:
    """Writes events; one is as good as another.

    ``exc_info`` among the values is an exception, or True for the one that is being handled; its
    traceback is written as ``exception``.
    """

    def debug(self, event: str, **values: object) -> None:
        """Write what only somebody who looks for a fault wants to know."""
        _destination("debug", event, values)

    def info(self, event: str, **values: object) -> None:
        """Write what happened."""
        _destination("info", event, values)

    def warning(self, event: str, **values: object) -> None:
        """Write what somebody should look at."""
        _destination("warning", event, values)

    def error(self, event: str, **values: object) -> None:
        """Write what has failed."""
        _destination("error", event, values)

    def log(self, level: Level, event: str, **values: object) -> None:
        """Write an event at a level."""
        _destination(level, event, values)


def get_logger() -> Logger:
    """Return what writes events."""
    return Logger()


def send_to(destination: Destination) -> None:
    """Have all events go to a destination from here on."""
    global _destination
    _destination = destination


@contextmanager
def sent_to(destination: Destination) -> Iterator[None]:
    """Have all events go to a destination while the block lasts."""
    before = _destination
    send_to(destination)
    try:
        yield
    finally:
        send_to(before)


def with_traceback(values: Values) -> Values:
    """Return the values of an event with a traceback as text in place of its exception."""
    error = values.pop("exc_info", None)
    if error is True:
        error = sys.exc_info()[1]
    elif isinstance(error, tuple):
        error = error[1]
    if isinstance(error, BaseException):
        values["exception"] = "".join(traceback.format_exception(error)).rstrip("\n")
    return values


def _forget(level: Level, event: str, values: Values) -> None:
    """Take what is written before there is a log."""


_destination: Destination = _forget
