"""What a program of a run costs on a transport alone, without the daemon around it.

A host of its own runs on loopback, with keys and files of its own. What is counted is the
processor time of the daemon's side, children included; not what the host does.
"""

from __future__ import annotations

import multiprocessing
from collections.abc import Mapping
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.benchmarks.rounds import Measured, Plan, measure
from tests.benchmarks.row import Scale, Value
from tests.benchmarks.ways import Target
from tests.transports.ssh.sshd import Keys, sshd_running

OPTIONS: dict[str, str | int] = {"MaxStartups": 100}  # ten logins of ssh may come at once


def transports(scale: Scale) -> Mapping[str, Value]:
    """Measure a program on both transports, one at a time and many at once; milliseconds."""
    crowds = (scale.of(10, 2), scale.of(100, 3))
    plan = Plan(
        rounds=scale.of(15, 1),
        batch=scale.of(10, 2),
        crowds=[(way, size, 3 * size) for size in crowds for way in ("turn", "channel")],
        crowd_rounds=scale.of(3, 1),
    )
    with TemporaryDirectory(prefix="sortie-benchmark-") as directory:
        measured = run(Path(directory), plan)
    cpu = {(found.way, found.at_once): found.cost.all * 1e3 for found in measured}
    latency = {found.way: found.latency * 1e3 for found in measured if found.at_once == 1}
    values = {
        "transport.remote": Value(
            ours=cpu["turn", 1],
            baseline=cpu["channel", 1],
            also={
                "the ssh program": cpu["ssh", 1],
                "the ssh program over a master": cpu["ssh-master", 1],
                "latency": latency["turn"],
                "latency of the baseline": latency["channel"],
            },
        ),
        "transport.local": Value(
            ours=cpu["local", 1],
            baseline=cpu["bare", 1],
            also={"latency": latency["local"], "latency of the baseline": latency["bare"]},
        ),
    }
    for name, size in zip((10, 100), crowds, strict=True):
        values[f"transport.remote.{name}"] = Value(
            ours=cpu["turn", size], baseline=cpu["channel", size]
        )
    return values


def run(place: Path, plan: Plan) -> list[Measured]:
    """Measure against a host in a directory, from a process of its own, as orphans of the host's
    programs and the host itself would count as children here."""
    keys = Keys.make(place / "client")
    with sshd_running(place / "host", keys, OPTIONS) as host:
        target = Target(port=host.port, settings=host.know(), place=str(place))
        spawn = multiprocessing.get_context("spawn")
        with ProcessPoolExecutor(1, mp_context=spawn) as pool:
            return pool.submit(measure, target, plan).result()
