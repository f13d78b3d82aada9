"""Output: no state of stderr stops the daemon, and no lost line goes uncounted."""

from __future__ import annotations

import fcntl
import os
import select
from pathlib import Path

import pytest

from sortie.telemetry.log.output import WRITE_TIMEOUT, LogOutput


def notice(count: int) -> str:
    return f"lost {count}"


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_a_full_disk_is_survived_and_counted() -> None:
    """ENOSPC loses the line, nothing else."""
    with open("/dev/full", "w") as stream:
        output = LogOutput(stream, notice)

        output.write("one")
        output.write("two")

        assert output.lost == 2


def test_a_closed_pipe_is_survived_and_counted() -> None:
    """A reader that has gone loses the line, nothing else."""
    reader, writer = os.pipe()
    with os.fdopen(writer, "w") as stream:
        output = LogOutput(stream, notice)
        os.close(reader)

        output.write("one")

        assert output.lost == 1


def test_a_reader_that_stopped_reading_holds_nobody_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a full pipe one of a thousand lines waits for room; those after it only look for some."""
    looked_in_vain = list[float]()
    new_poll = select.poll

    class Poll:
        def __init__(self) -> None:
            self._poll = new_poll()
            self.register = self._poll.register

        def poll(self, timeout: float) -> list[tuple[int, int]]:
            found = self._poll.poll(timeout)
            if not found:
                looked_in_vain.append(timeout)
            return found

    monkeypatch.setattr(select, "poll", Poll)
    reader, writer = os.pipe()
    with os.fdopen(writer, "w") as stream, os.fdopen(reader, "rb"):
        output = LogOutput(stream, notice)

        for _ in range(1000):
            output.write("x" * 1000)

        assert output.lost > 900
        assert looked_in_vain == [WRITE_TIMEOUT * 1000, *[0] * (output.lost - 1)]


@pytest.mark.skipif(not hasattr(fcntl, "F_SETPIPE_SZ"), reason="needs a pipe of a set size")
def test_a_torn_line_is_closed_off_and_the_loss_is_told() -> None:
    """After a line that fitted in half, the next one begins on a line of its own."""
    reader, writer = os.pipe()
    fcntl.fcntl(writer, fcntl.F_SETPIPE_SZ, 8192)
    with os.fdopen(writer, "w") as stream, os.fdopen(reader, "rb") as source:
        output = LogOutput(stream, notice)
        output.write("x" * 10_000)
        output.write("never seen")
        half = os.read(source.fileno(), 65536)

        output.write("after")
        rest = os.read(source.fileno(), 65536)

        assert half == b"x" * 8192
        assert rest == b"\nlost 2\nafter\n"
        assert output.lost == 2
