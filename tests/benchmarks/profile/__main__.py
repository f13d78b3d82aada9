"""Show where the processor time of the daemon goes while a row is measured.

python -m tests.benchmarks.profile [NAME ...] [--json FILE] [--short]

NAME is a row, or a group of rows before a dot such as ``runs``; all that can be profiled without
one. Needs Linux, root, and py-spy (``pip install py-spy``); perf and strace, where they are there,
tell more. ``python -m tests.benchmarks.profile.page FILE`` writes results into the documentation.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import sys
from pathlib import Path

from tests.benchmarks.profile.profiles import PROFILED, profile
from tests.benchmarks.profile.report import as_text
from tests.benchmarks.profile.samplers import program
from tests.benchmarks.report import machine
from tests.benchmarks.row import named


def main(arguments: list[str]) -> int:
    """Obey a command line and return the exit code: 1 where py-spy is missing."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.profile", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("names", nargs="*", metavar="NAME", help="which rows; default: all")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the results there too")
    parser.add_argument("--short", action="store_true", help="see that it works, in seconds")
    given = parser.parse_args(arguments)
    try:
        rows = named(PROFILED, given.names)
    except KeyError as error:
        names = ", ".join(row.name for row in PROFILED)
        parser.error(f"{error} cannot be profiled; {names} can")
    if program("py-spy") is None:
        sys.stderr.write("there is no py-spy; get it with: pip install py-spy\n")
        return 1
    where, profiles = machine(), []
    for row in rows:
        sys.stderr.write(f"profiling {row.name}\n")
        profiles.append(profile(row, given.short))
    sys.stdout.write(f"{as_text(profiles)}\n")
    if given.json is not None:
        told = [dataclasses.asdict(one) for one in profiles]
        results = {"machine": where, "short": given.short, "profiles": told}
        given.json.write_text(json.dumps(results, indent=2) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
