"""The configured log as a whole: formats, levels, libraries, secrets, exceptions."""

from __future__ import annotations

import io
import json
import logging
import re

import pytest
import structlog

from sortie.telemetry.log import LogFormat, configure

pytestmark = pytest.mark.usefixtures("logging_restored")

TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z")


def written(stream: io.StringIO) -> list[str]:
    return [TIME.sub("TIME", line) for line in stream.getvalue().splitlines()]


def test_text_is_one_line_an_event() -> None:
    """An event has its UTC time, level, name and values in the order given."""
    stream = io.StringIO()
    configure("info", "text", stream)

    structlog.get_logger().info("retry.scheduled", issue="DEMO-1", delay=10.0)

    assert written(stream) == ["TIME info    retry.scheduled issue=DEMO-1 delay=10.0"]


def test_json_is_one_object_an_event() -> None:
    """An event is an object that begins with time, level and event."""
    stream = io.StringIO()
    configure("info", "json", stream)

    structlog.get_logger().warning("issue.held", issue="DEMO-1", detail="two\nlines")

    (line,) = written(stream)
    assert list(json.loads(line).items()) == [
        ("time", "TIME"),
        ("level", "warning"),
        ("event", "issue.held"),
        ("issue", "DEMO-1"),
        ("detail", "two\nlines"),
    ]


@pytest.mark.parametrize(
    ("level", "seen"),
    [
        ("debug", ["a", "b", "c", "d"]),
        ("info", ["b", "c", "d"]),
        ("warning", ["c", "d"]),
        ("error", ["d"]),
    ],
)
def test_what_is_below_the_level_is_left_out(level: str, seen: list[str]) -> None:
    """The level is the least severe that is written."""
    stream = io.StringIO()
    configure(level, "json", stream)
    log = structlog.get_logger()

    log.debug("a")
    log.info("b")
    log.warning("c")
    log.error("d")

    assert [json.loads(line)["event"] for line in written(stream)] == seen


def test_libraries_warnings_come_through_and_their_chatter_does_not() -> None:
    """hypercorn and asyncio log through us from WARNING on, once, with their name."""
    stream = io.StringIO()
    logging.getLogger().handlers.clear()  # pytest's own would choke on the bad format
    configure("debug", "text", stream)
    configure("debug", "text", stream)
    hypercorn = logging.getLogger("hypercorn.error")
    asyncio = logging.getLogger("asyncio")

    hypercorn.info("running")
    asyncio.debug("changes")
    hypercorn.warning("odd %s", "thing\n2026 forged")
    hypercorn.error("bad format %d", "word")

    assert written(stream) == [
        r"TIME warning library.logged library=hypercorn.error "
        r'message="odd thing\n2026 forged"',
        'TIME error   library.logged library=hypercorn.error message="bad format %d"',
    ]


@pytest.mark.parametrize("line_format", ["text", "json"])
def test_a_traceback_is_one_line_without_secrets(line_format: LogFormat) -> None:
    """An exception's text is in the event, on its line, redacted."""
    stream = io.StringIO()
    configure("info", line_format, stream, secrets=["s3cr3t-value"])

    try:
        raise ValueError("the key s3cr3t-value is bad\nreally")
    except ValueError:
        logging.getLogger("any").exception("failed")

    (line,) = written(stream)
    assert "ValueError: the key *** is bad" in line
    assert "s3cr3t" not in line


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("stream", "terminal", "colours", "coloured"),
    [
        (Terminal(), None, True, True),
        (io.StringIO(), None, True, False),
        (Terminal(), None, False, False),
        (Terminal(), False, True, False),
        (io.StringIO(), True, True, True),
    ],
)
def test_colours_appear_on_a_terminal_only(
    stream: io.StringIO, terminal: bool | None, colours: bool, coloured: bool
) -> None:
    """Colours follow the stream, unless it is told what it is, or colours are not wanted."""
    configure("info", "text", stream, terminal, colours)

    structlog.get_logger().info("it.happened")

    assert ("\x1b[" in stream.getvalue()) is coloured


def test_a_terminal_gets_the_short_form() -> None:
    """Time of day and issue come first there; into a pipe the line is what it always was."""
    terminal, pipe = Terminal(), io.StringIO()
    for stream in (terminal, pipe):
        configure("info", "text", stream, colours=False)
        structlog.get_logger().info("run.started", issue="A-1", run="12345678-90ab", attempt=0)

    assert re.fullmatch(
        r"\d\d:\d\d:\d\dZ A-1 run\.started attempt=0 run=12345678\n", terminal.getvalue()
    )
    assert written(pipe) == ["TIME info    run.started issue=A-1 run=12345678-90ab attempt=0"]


def test_lost_lines_are_told_by_the_next_line() -> None:
    """When the stream can be written to again, an event says how many lines are missing."""
    stream = Flaky()
    output = configure("info", "text", stream)
    log = structlog.get_logger()
    stream.broken = True
    log.info("first")
    log.info("second")
    stream.broken = False

    log.info("third")

    assert output.lost == 2
    assert written(stream) == ["TIME warning log.lost lines=2", "TIME info    third"]


class Flaky(io.StringIO):
    broken = False

    def write(self, text: str) -> int:
        if self.broken:
            raise OSError("no space left")
        return super().write(text)
