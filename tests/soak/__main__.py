"""Full load for long, and whether anything grows meanwhile.

python -m tests.soak --simulated [--hours 5] [--seed 1]
python -m tests.soak --real [--minutes 20]

Exit codes: 0; 1 where something grows, or a promise was broken.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from tests.soak import real, simulated
from tests.soak.flatness import Look, Quantity, courses


def main(arguments: list[str]) -> int:
    """Obey a command line and return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.soak", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--simulated", action="store_true", help="on a virtual clock")
    what.add_argument("--real", action="store_true", help="with real processes")
    parser.add_argument("--hours", type=float, default=5.0, help="of virtual time; default: 5")
    parser.add_argument("--minutes", type=float, default=20.0, help="of real time; default: 20")
    parser.add_argument("--seed", type=int, default=1, help="what the simulation does")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all looks there")
    given = parser.parse_args(arguments)
    began = time.monotonic()
    wrongs: list[str] = []
    quantities: Sequence[Quantity]
    if given.simulated:
        virtual = simulated.Soak(given.seed, given.hours, _show)
        virtual.live()
        looks, quantities, wrongs = virtual.looks, simulated.QUANTITIES, virtual.wrongs
    else:
        actual = real.Soak(given.minutes, _show)
        actual.live()
        looks, quantities = actual.looks, real.QUANTITIES
    if given.json is not None:
        given.json.write_text(json.dumps(looks, indent=1) + "\n")
    sys.stdout.write(f"{looks[-1]['runs']:,.0f} runs in {time.monotonic() - began:,.0f} s\n")
    return judge(quantities, looks, wrongs)


def judge(quantities: Sequence[Quantity], looks: Sequence[Look], wrongs: Sequence[str]) -> int:
    """Tell how each quantity went and what was broken; return the exit code."""
    for wrong in wrongs:
        sys.stdout.write(f"broken: {wrong}\n")
    if wrongs:
        return 1
    found = courses(quantities, looks)
    sys.stdout.writelines(f"{course}\n" for course in found)
    return 0 if all(course.is_flat for course in found) else 1


def _show(look: Look) -> None:
    sys.stderr.write(", ".join(f"{name} {value:,.10g}" for name, value in look.items()) + "\n")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
