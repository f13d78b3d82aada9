"""Route what libraries log through the standard library (warnings and worse) into our log."""

from __future__ import annotations

import logging

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
