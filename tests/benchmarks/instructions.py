"""How many instructions of Python's virtual machine something takes: a cost that no load changes.

The number is the same at each run with one version of Python, and another with the next, which
parts the same text into other instructions. So it is told in steps: one is what a fixed piece of
plain Python takes in the same process. Work that is done in C counts as its call alone.
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

_ROUNDS = 100


def steps(act: Callable[[], object]) -> float:
    """Call something twice, as the first time fills caches, and return what the second costs."""
    act()
    _reference()
    return _instructions(act) / (_instructions(_reference) / _ROUNDS)


class _Pair:
    def __init__(self, key: int) -> None:
        self.key = key


def _reference() -> int:
    """Do a bit of all that Python programs do, _ROUNDS times."""
    seen: dict[int, _Pair] = {}
    total = 0
    for number in range(_ROUNDS):
        pair = _Pair(number % 7)
        if pair.key not in seen and isinstance(pair, _Pair):
            seen[pair.key] = pair
        total += len(seen) + seen[pair.key].key
    return total


def _instructions(act: Callable[[], object]) -> int:
    count = _monitored if sys.version_info >= (3, 12) else _traced
    collects = gc.isenabled()
    gc.disable()  # a finalizer of somebody else's would count too
    try:
        with count() as counted:
            act()
    finally:
        if collects:
            gc.enable()
    return counted[0]


@contextmanager
def _monitored() -> Iterator[list[int]]:
    """Count with sys.monitoring."""
    monitoring: Any = sys.monitoring  # type: ignore[attr-defined,unused-ignore]
    counted = [0]

    def instruction(_code: object, _offset: int) -> None:
        counted[0] += 1

    tool, event = monitoring.PROFILER_ID, monitoring.events.INSTRUCTION
    monitoring.use_tool_id(tool, "instructions")
    try:
        monitoring.register_callback(tool, event, instruction)
        monitoring.set_events(tool, event)
        yield counted
    finally:
        monitoring.set_events(tool, 0)
        monitoring.free_tool_id(tool)


@contextmanager
def _traced() -> Iterator[list[int]]:
    """Count with sys.settrace, which sees the frames that begin from here on."""
    counted = [0]

    def traced(frame: FrameType, event: str, _argument: object) -> Any:
        if event == "call":
            frame.f_trace_opcodes, frame.f_trace_lines = True, False
        elif event == "opcode":
            counted[0] += 1
        return traced

    before = sys.gettrace()
    sys.settrace(traced)
    try:
        yield counted
    finally:
        sys.settrace(before)
