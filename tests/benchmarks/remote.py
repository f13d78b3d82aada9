"""What a turn on a remote host costs the daemon, beside a bare command and the ``ssh`` program.

python -m tests.benchmarks.remote [--commands N] [--crowds]

A host of its own runs on loopback, with keys and files of its own. What is counted is the
processor time of the daemon's side, children included; not what the host does.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import platform
import sys
from collections.abc import Iterable
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.benchmarks.rounds import Measured, Plan, measure
from tests.benchmarks.ways import Target
from tests.transports.ssh.sshd import MISSING, Keys, sshd_running

BATCH = 10
CROWDS = (
    ("turn", 10, 100),
    ("channel", 10, 100),
    ("ssh", 10, 30),
    ("ssh-master", 10, 100),
    ("turn", 100, 300),
    ("channel", 100, 300),
)
# A hundred of ours share the sessions of some connections; ten logins of ssh come at once.
OPTIONS: dict[str, str | int] = {"MaxStartups": 100}


def run(place: Path, plan: Plan) -> list[Measured]:
    """Measure against a host in a directory, from a process of its own, as orphans of the host's
    programs and the host itself would count as children here."""
    keys = Keys.make(place / "client")
    with sshd_running(place / "host", keys, OPTIONS) as host:
        target = Target(port=host.port, settings=host.know(), place=str(place))
        spawn = multiprocessing.get_context("spawn")
        with ProcessPoolExecutor(1, mp_context=spawn) as pool:
            return pool.submit(measure, target, plan).result()


def ratio(measured: Iterable[Measured], other: str, way: str = "turn") -> float:
    """Return how many times the processor time of one way another takes, one at a time."""
    costs = {found.way: found.cost.all for found in measured if found.at_once == 1}
    return costs[other] / costs[way]


def table(measured: Iterable[Measured]) -> str:
    """Return the table, in milliseconds."""
    lines = [
        "| way | at once | commands | p50 ms | p90 ms | CPU ms | of it children | commands/s |",
        "|---|---|---|---|---|---|---|---|",
    ]
    lines += [
        f"| {m.way} | {m.at_once} | {m.commands} | {_ms(m.latency)} | {_ms(m.slow)} |"
        f" {_ms(m.cost.all)} | {_ms(m.cost.children)} | {m.rate:.0f} |"
        for m in measured
    ]
    return "\n".join(lines)


def main(arguments: list[str]) -> int:
    """Obey a command line and return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.remote", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--commands", type=int, default=200, help="of each way, one at a time")
    parser.add_argument("--crowds", action="store_true", help="then 10 and 100 at once")
    given = parser.parse_args(arguments)
    if MISSING is not None:
        sys.stderr.write(f"cannot measure: {MISSING}\n")
        return 1
    plan = Plan(
        rounds=max(1, given.commands // BATCH), batch=BATCH, crowds=CROWDS if given.crowds else ()
    )
    load = os.getloadavg()
    with TemporaryDirectory() as directory:
        measured = run(Path(directory), plan)
    sys.stdout.write(f"{table(measured)}\n\n")
    for found in measured:
        if found.phases:
            start, ran, end = map(_ms, found.phases)
            sys.stdout.write(f"{found.way}: start {start}, run {ran}, end {end} ms (p50)\n")
    for other in ("ssh", "ssh-master", "channel", "local"):
        sys.stdout.write(f"{other} takes {ratio(measured, other):.1f} times the CPU of a turn\n")
    sys.stdout.write(
        f"{os.cpu_count()} cores, {platform.machine()}, Python {platform.python_version()},"
        f" load {load[0]:.1f} before and {os.getloadavg()[0]:.1f} after\n"
    )
    return 0


def _ms(seconds: float) -> str:
    return f"{seconds * 1e3:.2f}"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
