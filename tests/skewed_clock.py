"""A clock that is hours off and jumps, for programs of a test."""

from __future__ import annotations

import os
import shutil
import struct
import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest

_SOURCE = Path(__file__).with_suffix(".c")
_COMPILER = shutil.which("cc")
MISSING = None if _COMPILER else "there is no C compiler, for a clock that is off"
requires_skewed_clock = pytest.mark.skipif(MISSING is not None, reason=str(MISSING))


class SkewedClock:
    """The time of day of all programs with ``environ``; their monotonic clock is the machine's, and
    so are the times of files. It has its files in a directory of its own. With ``all_clocks`` the
    monotonic ones, and that of the time since the machine was started, are set as well.

    Without a compiler it is the machine's, and cannot be set.
    """

    def __init__(self, directory: Path, *, all_clocks: bool = False) -> None:
        directory.mkdir()
        self._ahead = directory / "ahead"
        self._ahead.write_bytes(struct.pack("d", 0.0))
        self.environ: Mapping[str, str] = {}
        """What programs are started with."""
        if _COMPILER is not None:
            library = directory / "clock.so"
            subprocess.run([_COMPILER, "-shared", "-fPIC", "-o", library, _SOURCE], check=True)
            self.environ = {"LD_PRELOAD": str(library), "SORTIE_TEST_CLOCK": str(self._ahead)}
            if all_clocks:
                self.environ = {**self.environ, "SORTIE_TEST_CLOCK_ALL": "yes"}

    def set(self, hours: float) -> None:
        """Have the clock be so many hours ahead of the machine's, at once and from now on."""
        assert _COMPILER is not None, MISSING
        with self._ahead.open("r+b") as file:
            os.write(file.fileno(), struct.pack("d", hours * 3600.0))
