"""What an issue of one turn costs when there are many of them, and how many are done a second."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass

from tests.benchmarks.bare import run_all_bare, spawn_all
from tests.benchmarks.place import HANDED_OFF, benchmark_place
from tests.benchmarks.row import Scale, Value
from tests.store.postgres_server import PostgresServer
from tests.telemetry.traces.receiver import receiving

ISSUES = 500
AGENT = "exec sleep 0.2"
POLL = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """What many runs took: milliseconds of the daemon's and of the agents' processor time for
    each, and how many were done a second."""

    cpu: float
    agents: float
    rate: float


def eight_slots(scale: Scale) -> Mapping[str, Value]:
    """Measure 500 issues in 8 slots."""
    return _rows(8, scale)


def sixty_four_slots(scale: Scale) -> Mapping[str, Value]:
    """Measure 500 issues in 64 slots."""
    return _rows(64, scale)


def _rows(slots: int, scale: Scale) -> dict[str, Value]:
    count = scale.often(ISSUES, 12)
    ours = run_all(count, slots)
    with benchmark_place() as place:
        place.write_agent(AGENT)
        spawned = spawn_all(place.agent, place.environ({}), count, slots)
        bare = run_all_bare(place.agent, place.environ({}), count, slots)
    return {
        f"runs.{slots}.cpu": Value(
            ours=ours.cpu,
            baseline=bare.cpu * 1e3,
            also={"posix_spawn and waitpid": spawned.cpu * 1e3, "the agent itself": ours.agents},
        ),
        f"runs.{slots}.rate": Value(
            ours=ours.rate, baseline=bare.rate, also={"posix_spawn and waitpid": spawned.rate}
        ),
    }


def traced(scale: Scale) -> Mapping[str, Value]:
    """Measure issues in 8 slots with traces, and without."""
    count = scale.often(ISSUES, 12)
    plain = run_all(count, 8)
    with receiving() as receiver:
        ours = run_all(count, 8, traces={"endpoint": receiver.url.removesuffix("/v1/traces")})
    return {
        "runs.traces": Value(
            ours=ours.cpu / plain.cpu,
            also={
                "with [ms]": ours.cpu,
                "without [ms]": plain.cpu,
                "spans of a run [1]": len(receiver.spans) / count,
            },
        )
    }


def run_all(
    count: int,
    slots: int,
    server: PostgresServer | None = None,
    traces: Mapping[str, object] | None = None,
) -> Batch:
    """Have a daemon run issues of one turn each, with its rows in a file or on a server, and with
    or without traces.

    Processor time counts from the first agent's beginning to the last issue's handoff.
    """
    with benchmark_place() as place:
        place.write_agent(AGENT)
        store = {}
        if server is not None:
            place.variables["SORTIE_STORE_URL"] = server.url
            store = {"url": "$SORTIE_STORE_URL", "schema": server.schema()}
        more = {} if traces is None else {"traces": traces}
        place.configure(POLL, agent={"max_concurrent_agents": slots}, store=store, **more)
        place.add_issues(f"N-{number}" for number in range(count))
        with place.daemon() as daemon:
            began = place.marks.wait("begun")
            with daemon.spending() as spending:
                done_before = len(daemon.lines("issue.moved", state=HANDED_OFF))
                last = daemon.wait("issue.moved", count, state=HANDED_OFF)["seen_at"]
                time.sleep(0.1)  # the last run's end
            used = spending.used / (count - done_before)
            done = daemon.lines("run.finished", status="succeeded")
    assert len(done) == count, f"{len(done)} of {count} runs have succeeded"
    return Batch(cpu=used.own * 1e3, agents=used.children * 1e3, rate=count / (last - began))
