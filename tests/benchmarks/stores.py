"""What a run costs whose rows are on a PostgreSQL server, of what it costs with a file."""

from __future__ import annotations

from collections.abc import Mapping
from tempfile import TemporaryDirectory

import trio

from sortie.store.postgres import open_postgres_store
from sortie.store.postgres_address import parse_address
from sortie.store.sqlite import open_store
from tests.benchmarks.inner import COMMITS, commit_times
from tests.benchmarks.row import Scale, Value, middle
from tests.benchmarks.runs import run_all
from tests.store.postgres_server import PostgresServer, postgres_running

ISSUES = 150
SLOTS = 8
TURNS = 4


def stores(scale: Scale) -> Mapping[str, Value]:
    """Measure daemons with either store by turns, the server on the same disk."""
    count = scale.often(ISSUES, 12)
    file, server = list[float](), list[float]()
    with postgres_running(fsync="on") as postgres:
        for _ in range(scale.of(TURNS, 1)):
            file.append(run_all(count, SLOTS).cpu)
            server.append(run_all(count, SLOTS, postgres).cpu)
        commits = _commits(postgres, scale.of(COMMITS, 5))
    return {
        "store.server": Value(
            ours=middle([there / here for there, here in zip(server, file, strict=True)]),
            also={
                "with a file [ms]": middle(file),
                "with the server [ms]": middle(server),
                **commits,
            },
        )
    }


def _commits(server: PostgresServer, count: int) -> dict[str, float]:
    """Return how long a commit of one record takes, in milliseconds."""
    address = parse_address(server.url, server.schema())
    with TemporaryDirectory(prefix="sortie-benchmark-") as directory:
        return {
            "a commit to the file [ms]": trio.run(
                commit_times, open_store(f"{directory}/db"), 1, count
            ),
            "a commit to the server [ms]": trio.run(
                commit_times, open_postgres_store(address), 1, count
            ),
        }
