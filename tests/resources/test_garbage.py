"""Garbage is hardly searched for while a process starts, and as usual afterwards."""

from __future__ import annotations

import gc
import subprocess
import sys

from sortie.resources.garbage import OBJECTS_OF_A_START, few_searches

PROGRAM = """
import gc
from sortie.resources.garbage import (
    DAEMON_THRESHOLDS,
    few_searches,
    search_as_daemon,
)

class Cycle:
    def __init__(self):
        self.itself = self

with few_searches():
    begun = sum(generation["collections"] for generation in gc.get_stats())
    made = [[] for _ in range(20_000)]
    searched = sum(generation["collections"] for generation in gc.get_stats()) - begun
    cycles = [Cycle() for _ in range(10)]
    del cycles
    search_as_daemon()
    lost = sum(isinstance(each, Cycle) for each in gc.get_objects())
    is_set = gc.get_threshold() == DAEMON_THRESHOLDS
    print(searched, lost, is_set, gc.get_freeze_count() > len(made))
"""


def test_a_start_is_not_searched_and_its_garbage_is_not_kept() -> None:
    """Twenty thousand objects cause no search; at the end of the start cycles are freed."""
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], capture_output=True, text=True, timeout=60, check=True
    )

    assert done.stdout.split() == ["0", "0", "True", "True"]


def test_what_comes_after_a_command_is_searched_as_before() -> None:
    """A program that runs commands itself keeps its own ways."""
    usual = gc.get_threshold()

    try:
        with few_searches():
            within = gc.get_threshold()
    finally:
        gc.unfreeze()

    assert within == (OBJECTS_OF_A_START, *usual[1:])
    assert gc.get_threshold() == usual
