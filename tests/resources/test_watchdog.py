"""The watchdog ends what is stuck, and leaves alone what was only paused."""

from __future__ import annotations

import signal
import subprocess
import sys

import pytest

from sortie.resources.watchdog import CHECK, EXIT_STUCK, LAST_SECONDS, STANDSTILL, Watchdog


class Left(Exception):
    """The process would be gone."""


class World:
    """A loop and a clock, and a sleep that takes what the test says."""

    def __init__(self, *delays: float, beating: bool = False) -> None:
        self.seconds = 0.0
        self.beats = 0
        self.said: list[tuple[bytes, float]] = []
        self._delays = list(delays)
        self._beating = beating
        self.watchdog = Watchdog(lambda: self.beats, self._leave, self._sleep, lambda: self.seconds)

    def _sleep(self, seconds: float) -> None:
        if not self._delays:
            raise Left
        self.seconds += seconds + self._delays.pop(0)
        self.beats += self._beating

    def _leave(self, message: bytes) -> None:
        self.said.append((message, self.seconds))
        raise Left

    def run(self) -> None:
        with pytest.raises(Left):
            self.watchdog._watch()


def test_a_loop_that_stands_still_is_ended() -> None:
    """After the bound, and not before."""
    world = World(*[0.0] * 1000)

    world.run()

    ((message, at),) = world.said
    assert b"stood still" in message
    assert STANDSTILL <= at <= STANDSTILL + 2 * CHECK


def test_a_loop_that_comes_round_is_left_alone() -> None:
    """For ever."""
    world = World(*[0.0] * 1000, beating=True)

    world.run()

    assert world.said == []


def test_a_pause_of_the_whole_process_is_no_standstill() -> None:
    """However long and however often it is stopped, the loop has its time when it goes on."""
    world = World(*[0.0, 3600.0] * 16)

    world.run()

    assert world.said == []


def test_a_process_that_has_to_end_is_gone_in_time() -> None:
    """Also where its loop comes round; a pause does not count."""
    world = World(*[0.0] * 5, 3600.0, *[0.0] * 100, beating=True)
    world.watchdog.leave_within()

    world.run()

    ((message, at),) = world.said
    assert b"could not end" in message
    assert at == 3600 + LAST_SECONDS + CHECK


def test_memory_that_runs_out_does_not_end_the_watch() -> None:
    """A check that fails for it is made again."""
    world = World(*[0.0] * 1000)
    tries: list[int] = []

    def beats() -> int:
        tries.append(1)
        if len(tries) < 5:
            raise MemoryError
        return 0

    world.watchdog = Watchdog(beats, world._leave, world._sleep, lambda: world.seconds)

    world.run()

    assert len(world.said) == 1


PROGRAM = """
import sys, time
from sortie.resources import watchdog
watchdog.STANDSTILL, watchdog.CHECK = 1.0, 0.5
beats = iter(range(3))
with watchdog.Watchdog(lambda: 0):
    def stuck_here():
        while True:
            time.sleep(0.1)
    stuck_here()
"""


def test_a_process_that_is_stuck_says_where_and_leaves_with_a_code() -> None:
    """In earnest: the message, the stack of the thread that hangs, and the exit code."""
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], capture_output=True, text=True, timeout=60, check=False
    )

    assert done.returncode == EXIT_STUCK
    assert "stood still" in done.stderr
    assert "in stuck_here" in done.stderr


def test_a_stderr_that_nobody_reads_does_not_keep_it() -> None:
    """Where not even the message can be written, a signal ends the process."""
    program = PROGRAM.replace(
        "with watchdog", "import fcntl, os\nos.write(2, bytes(65536))\nwith watchdog", 1
    )
    process = subprocess.Popen([sys.executable, "-c", program], stderr=subprocess.PIPE)

    assert process.wait(timeout=60) == -signal.SIGALRM
    assert process.stderr is not None
    process.stderr.close()
