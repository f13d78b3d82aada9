"""Make small mistakes in the core, one at a time, and see whether the nearest tests notice.

python -m tests.mutation [--package NAME ...] [--mutants N] [--seed S] [--jobs J] [--minutes M]

Exit codes: 0; 1 where too few were killed in a package; 2 where the tests fail without a mutant.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from dataclasses import dataclass
from random import Random

from tests.mutation.explained import Explained, explained
from tests.mutation.mutants import Mutant, mutants_of
from tests.mutation.trying import ROOT, Tried, Unsound, try_all


@dataclass(frozen=True, slots=True, kw_only=True)
class Package:
    """A package with its nearest tests, quick ones first. ``mutants`` is how many are made, and
    ``share`` how many in a hundred of them must be killed."""

    tests: tuple[str, ...]
    mutants: int
    share: int


PACKAGES = {
    "scheduler": Package(
        tests=("tests/scheduler", "tests/test_exports.py", "tests/sim/test_scheduler_days.py"),
        mutants=100,
        share=95,
    ),
    "orchestrator": Package(tests=("tests/orchestrator",), mutants=40, share=80),
    "worker": Package(tests=("tests/worker", "tests/orchestrator"), mutants=40, share=85),
    "store": Package(tests=("tests/contract/store", "tests/store"), mutants=40, share=85),
    "agents": Package(tests=("tests/agents",), mutants=40, share=85),
}


def main(arguments: list[str]) -> int:
    """Obey a command line and return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.mutation", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--package", action="append", choices=PACKAGES, help="default: all")
    parser.add_argument("--mutants", type=int, help="how many of each package")
    parser.add_argument("--seed", default="1", help="which ones")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes")
    parser.add_argument("--minutes", type=float, default=30.0, help="for all packages together")
    given = parser.parse_args(arguments)
    until = time.monotonic() + 60.0 * given.minutes
    enough = True
    for name in given.package or PACKAGES:
        package = PACKAGES[name]
        count = package.mutants if given.mutants is None else given.mutants
        _print(f"{name}: {count} mutants")
        mutants = list(mutants_of(ROOT, _files(name), count, Random(f"{given.seed} {name}")))
        try:
            tried = []
            for one in try_all(mutants, package.tests, given.jobs, until):
                tried.append(one)
                if not one.killed:
                    _print(f"{name}: after {len(tried)} one survived: {one.mutant}")
        except Unsound as exc:
            _print(f"{name}: the tests fail without a mutant:\n{exc}")
            return 2
        enough &= _report(name, package, tried, len(mutants))
    return 0 if enough else 1


def _files(package: str) -> list[str]:
    found = (ROOT / "sortie" / package).glob("*.py")
    return sorted(str(path.relative_to(ROOT)) for path in found)


def _report(name: str, package: Package, tried: list[Tried], meant: int) -> bool:
    """Say what became of a package's mutants, and return whether enough of them were killed."""
    known = explained()
    survivors = sorted((t.mutant for t in tried if not t.killed), key=lambda m: (m.file, m.number))
    killed = len(tried) - len(survivors)
    share = 100 * killed / len(tried) if tried else 0.0
    in_time = "" if len(tried) == meant else f" (of {meant}; the others were not begun in time)"
    seconds = sum(t.seconds for t in tried)
    _print(f"{name}: {killed} of {len(tried)} mutants killed{in_time}: {share:.0f} in a hundred,")
    _print(f"    {package.share} are asked for; {seconds:.0f} s of tests")
    for mutant in survivors:
        _print(f"  survived: {mutant}")
        _print(f"    {_why(mutant, known) or 'NOT EXPLAINED'}")
    return share >= package.share


def _why(mutant: Mutant, known: tuple[Explained, ...]) -> str | None:
    for entry in known:
        if (entry.file, entry.was, entry.becomes) == (mutant.file, mutant.was, mutant.becomes):
            return f"changes nothing: {entry.why}"
    return None


def _print(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
