"""Traces as a collector gets them from a daemon: of whole runs, and of one that is killed."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Iterator

import pytest
import trio

from sortie.model import RunId
from sortie.model.traces import RUN, hook_part, span_id_of, trace_id_of, turn_part
from tests.e2e.conftest import Start
from tests.e2e.place import PATIENCE, Json, Place
from tests.ports import free_port
from tests.telemetry.traces.receiver import Answer, Receiver, Sent, receiving

TOKEN = "t0ken-of-the-collector"


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with receiving() as receiver:
        yield receiver


def trace(place: Place, url: str, **keys: object) -> None:
    """Have the daemons of a place send spans to a receiver."""
    endpoint = url.removesuffix("/v1/traces")
    headers = {"Authorization": "Bearer $COLLECTOR"}
    place.write_workflow(
        traces={"endpoint": endpoint, "headers": headers, **keys},
        hooks={"before_run": 'echo "$TRACEPARENT"'},
    )


async def until_sent(receiver: Receiver, name: str) -> Sent:
    """Wait for a span."""
    with trio.fail_after(PATIENCE):
        while not (found := [span for span in receiver.spans if span.name == name]):
            await trio.sleep(0.05)
    return found[0]


def below(receiver: Receiver, run: Json) -> set[str]:
    """Return the names of the spans in the trace of a run, each with that of its parent."""
    spans = [span for span in receiver.spans if span.trace_id == f"{trace_id_of(run):032x}"]
    names = {span.span_id: span.name for span in spans}
    return {f"{names.get(span.parent_id, '')} > {span.name}" for span in spans}


async def test_the_runs_of_a_daemon_are_traces(
    place: Place, start: Start, receiver: Receiver
) -> None:
    """Each in its own, sent before the daemon is gone; hooks and lines of the log have its ids, and
    neither the log nor an agent has the token."""
    trace(place, receiver.url)
    for name in ("A", "B"):
        place.add_issue(name)

    async with start(COLLECTOR=TOKEN) as daemon:
        runs = [(await daemon.line("run.finished", issue=name))["run"] for name in ("A", "B")]
        hook = await daemon.line("hook.completed", issue="A")
        begun = await daemon.line("turn.started", issue="A")

    for run in runs:
        assert below(receiver, run) >= {
            " > run",
            "run > start",
            "run > workspace",
            "run > hook before_run",
            "run > session",
            "run > invoke_agent kiro",
            "run > reread",
            "run > end",
        }
    run = RunId(runs[0])
    ids = (f"{trace_id_of(run):032x}", f"{span_id_of(run, turn_part(1)):016x}")
    assert (begun["trace_id"], begun["span_id"]) == ids
    assert hook["output"] == f"00-{ids[0]}-{span_id_of(run, hook_part('before_run')):016x}-01\n"
    assert {request["authorization"] for request in receiver.requests} == {f"Bearer {TOKEN}"}
    assert TOKEN not in json.dumps(daemon.log)
    assert TOKEN not in place.agents_log.read_text()


@pytest.mark.portless
async def test_the_next_daemon_ends_the_trace_of_a_run_that_was_killed(
    place: Place, start: Start, receiver: Receiver
) -> None:
    """Both add to one trace, whose root says that the run was interrupted."""
    trace(place, receiver.url)
    place.add_issue("A", "hang=1")

    async with start(COLLECTOR=TOKEN) as first:
        run = RunId((await first.line("turn.started", issue="A"))["run"])
        sent = await until_sent(receiver, "workspace")
        first.signal(signal.SIGKILL)
        await first.exit_code()
    place.add_issue("A", "")
    async with start(COLLECTOR=TOKEN) as second:
        await second.line("run.interrupted", run=run, trace_id=sent.trace_id)
        await second.line("run.finished", issue="A")
    roots = [span for span in receiver.spans if span.name == "run"]
    root = next(span for span in roots if span.trace_id == sent.trace_id)

    assert sent.trace_id == f"{trace_id_of(run):032x}"
    assert sent.parent_id == root.span_id == f"{span_id_of(run, RUN):016x}"
    assert (root.error, root.attributes["sortie.run.status"]) == ("interrupted", "interrupted")
    assert [span.error for span in roots if span is not root] == [""]


@pytest.mark.full
@pytest.mark.portless
async def test_a_silent_collector_harms_no_run(place: Place, start: Start) -> None:
    """What it does not take is told of at the end, which is in time."""
    with receiving(Answer(hangs=True)) as silent:
        trace(place, silent.url)
        place.add_issue("A")
        async with start(COLLECTOR=TOKEN) as daemon:
            finished = await daemon.line("run.finished", issue="A")
            daemon.signal(signal.SIGTERM)
            code = await daemon.exit_code()  # one that runs out of time leaves with 1
            (lost,) = daemon.lines("traces.lost")

    assert (finished["status"], code) == ("succeeded", 0)
    assert lost["dropped"] > 5
    assert lost["error"] == "the collector did not answer in time"


COLLECTOR = os.environ.get("OTELCOL", "")
"""The program of an OpenTelemetry Collector that takes OTLP and writes files, as the distribution
``contrib`` does."""

CONFIGURATION = """
receivers: {{otlp: {{protocols: {{http: {{endpoint: "127.0.0.1:{port}"}}}}}}}}
exporters: {{file: {{path: "{path}", flush_interval: 100ms}}}}
service:
  telemetry: {{metrics: {{level: none}}}}
  pipelines: {{traces: {{receivers: [otlp], exporters: [file]}}}}
"""


@pytest.mark.full
@pytest.mark.portless
@pytest.mark.skipif(not COLLECTOR, reason="OTELCOL names no program of a collector")
async def test_a_real_collector_takes_all(place: Place, start: Start) -> None:
    """It reads what is sent, and refuses none of it."""
    port, written = free_port(), place.root / "spans.json"
    configuration = place.root / "collector.yaml"
    configuration.write_text(CONFIGURATION.format(port=port, path=written))
    command = [COLLECTOR, "--config", str(configuration)]
    collector = await trio.lowlevel.open_process(command, stderr=subprocess.DEVNULL)
    try:
        with trio.fail_after(PATIENCE):
            while not written.exists():
                await trio.sleep(0.05)
        trace(place, f"http://127.0.0.1:{port}/v1/traces")
        place.add_issue("A")
        async with start("--log-level", "debug", COLLECTOR=TOKEN) as daemon:
            run = RunId((await daemon.line("run.finished", issue="A"))["run"])
            daemon.signal(signal.SIGTERM)
            assert await daemon.exit_code() == 0
            (exported,) = daemon.lines("traces.exported")
    finally:
        collector.terminate()
        await collector.wait()
    spans = [
        span
        for line in written.read_text().splitlines()
        for resource in json.loads(line)["resourceSpans"]
        for scope in resource["scopeSpans"]
        for span in scope["spans"]
    ]

    assert len(spans) == exported["exported"]
    assert {span["traceId"] for span in spans} == {f"{trace_id_of(run):032x}"}
    assert {"run", "session", "invoke_agent kiro", "end"} <= {span["name"] for span in spans}
