"""Replay simulated days by their seeds: ``python -m tests.sim.replay SEED...``."""

from __future__ import annotations

import sys

from tests.sim.days import live_through

if __name__ == "__main__":
    for argument in sys.argv[1:]:
        sys.stdout.write(f"day {argument}\n")
        live_through(int(argument))
