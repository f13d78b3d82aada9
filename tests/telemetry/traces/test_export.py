"""What is sent to a collector, and what becomes of spans where it does not take them."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTracePartialSuccess,
    ExportTraceServiceResponse,
)

from sortie.config.traces import TraceTarget
from sortie.telemetry.traces import exporter, pipeline
from sortie.telemetry.traces.pipeline import ExportCounts, SpanPipeline
from sortie.telemetry.traces.spans import SCHEMA, Span, SpanEvent
from tests.telemetry.traces.receiver import Answer, Receiver, receiving

TOKEN = "Bearer not-for-anybody"
AT = 1_800_000_000_000_000_000
PATIENCE = 40.0
SPAN = Span(
    name="run",
    trace_id=0xA1,
    span_id=0xB1,
    start=AT,
    end=AT + 1_500_000_000,
    attributes={"sortie.attempt": 2, "sortie.reaction": ["checks"], "sortie.rule": None},
    events=(SpanEvent(name="stopping", at=AT, attributes={"sortie.reason": None}),),
    links=((0xC1, 0xD1),),
    error="port_exit",
)


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Send at once, and try again soon."""
    monkeypatch.setattr(pipeline, "SEND_EVERY", 0.01)
    monkeypatch.setattr(exporter, "_FIRST_PAUSE", 0.01)


def target(url: str, **resource: str) -> TraceTarget:
    return TraceTarget(
        url=url, headers={"Authorization": TOKEN}, service="sortie", resource=resource
    )


def counted(spans: SpanPipeline, enough: Callable[[ExportCounts], bool]) -> ExportCounts:
    """Return all counts so far, once they are enough."""
    total, end = ExportCounts(), time.monotonic() + PATIENCE
    while not enough(total):
        assert time.monotonic() < end, total
        if (news := spans.news()) is not None:
            total = ExportCounts(
                exported=total.exported + news.exported,
                dropped=total.dropped + news.dropped,
                failed=total.failed + news.failed,
                error=news.error or total.error,
            )
        time.sleep(0.005)
    return total


def close(spans: SpanPipeline) -> None:
    spans.flush()
    spans.give_up()


def test_a_span_arrives_as_it_was_made() -> None:
    """With its own ids and times, and what is None left out; the headers are those of the
    settings."""
    child = Span(
        name="turn", trace_id=0xA1, span_id=0xB2, parent_id=0xB1, start=AT, end=AT, kind="client"
    )
    with receiving() as receiver:
        spans = SpanPipeline(target(receiver.url, team="blue"))
        spans.add(SPAN)
        spans.add(child)
        close(spans)

    root, turn = sorted(receiver.spans, key=lambda span: span.span_id)
    assert (root.trace_id, root.span_id, root.parent_id) == (f"{0xA1:032x}", f"{0xB1:016x}", "")
    assert (turn.trace_id, turn.parent_id) == (root.trace_id, root.span_id)
    assert root.attributes == {
        "sortie.attempt": 2,
        "sortie.reaction": ["checks"],
        "error.type": "port_exit",
    }
    assert (root.seconds, root.error, root.events) == (1.5, "port_exit", ("stopping",))
    assert root.links == ((f"{0xC1:032x}", f"{0xD1:016x}"),)
    assert receiver.requests[0]["authorization"] == TOKEN
    assert receiver.requests[0]["path"] == "/v1/traces"
    assert receiver.schemas == {SCHEMA}
    named = {"service.name": "sortie", "team": "blue"}
    assert named.items() <= receiver.resources[0].items()
    assert spans.news() == ExportCounts(exported=2)


@pytest.mark.parametrize("status", [429, 503])
def test_a_refusal_that_may_pass_is_tried_again(status: int) -> None:
    """As often as it takes, within the patience."""
    refused = Answer(status=status, headers={"Retry-After": "0"})
    with receiving(refused, refused, Answer()) as receiver:
        spans = SpanPipeline(target(receiver.url))
        spans.add(SPAN)
        total = counted(spans, lambda counts: counts.exported > 0)
        close(spans)

    assert total == ExportCounts(exported=1)
    assert len(receiver.requests) == 3


def test_it_is_left_alone_as_long_as_it_asks_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where that is longer than the patience, the spans have failed."""
    with receiving(Answer(status=429, headers={"Retry-After": "3600"})) as receiver:
        spans = SpanPipeline(target(receiver.url))
        spans.add(SPAN)
        total = counted(spans, lambda counts: counts.failed > 0)
        close(spans)

    assert (total.failed, len(receiver.requests)) == (1, 1)
    assert total.error == "the collector answers 429 Too Many Requests"


@pytest.mark.parametrize(
    "answer",
    [
        Answer(status=400),
        Answer(status=401, body=TOKEN.encode()),
        Answer(status=302, headers={"Location": "http://127.0.0.1:1/"}),
    ],
)
def test_any_other_refusal_is_final(answer: Answer, caplog: pytest.LogCaptureFixture) -> None:
    """No redirect is followed, and no text repeats the credential."""
    caplog.set_level(logging.DEBUG)
    with receiving(answer) as receiver:
        spans = SpanPipeline(target(receiver.url))
        spans.add(SPAN)
        total = counted(spans, lambda counts: counts.failed > 0)
        close(spans)

    assert (total.failed, len(receiver.requests)) == (1, 1)
    assert str(answer.status) in str(total.error)
    assert "not-for-anybody" not in caplog.text + repr(spans) + repr(target("u")) + str(total)


def test_an_error_repeats_no_header(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not even one that no request can have, which the library quotes."""
    monkeypatch.setattr(exporter, "PATIENCE", 0.0)
    headers = {"Authorization": "Bearer not-for\nanybody"}
    with receiving() as receiver:
        spans = SpanPipeline(
            TraceTarget(url=receiver.url, headers=headers, service="sortie", resource={})
        )
        spans.add(SPAN)
        total = counted(spans, lambda counts: counts.failed > 0)
        close(spans)

    assert "***" in str(total.error)
    assert "not-for" not in str(total.error)


def test_spans_that_a_collector_refuses_alone_are_counted() -> None:
    """Its answer is a success that says how many it has not taken, and why."""
    partial = ExportTracePartialSuccess(rejected_spans=1, error_message=f"too old: {TOKEN}")
    body = ExportTraceServiceResponse(partial_success=partial).SerializeToString()
    with receiving(Answer(body=body)) as receiver:
        spans = SpanPipeline(target(receiver.url))
        spans.add(SPAN)
        total = counted(spans, lambda counts: counts.failed > 0)
        close(spans)

    assert total == ExportCounts(failed=1, error="the collector refuses some: too old: ***")


def test_where_there_is_none_spans_fail(monkeypatch: pytest.MonkeyPatch) -> None:
    """After the patience, each batch; a span is lost, and nothing else."""
    monkeypatch.setattr(exporter, "PATIENCE", 0.05)
    spans = SpanPipeline(target("http://127.0.0.1:1/v1/traces"))
    spans.add(SPAN)
    total = counted(spans, lambda counts: counts.failed > 0)
    close(spans)

    assert (total.exported, total.failed) == (0, 1)
    assert total.error is not None


def test_what_waits_for_a_silent_collector_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Further spans are dropped, each is counted once, and to add one does not wait."""
    monkeypatch.setattr(pipeline, "QUEUE_LIMIT", 8)
    monkeypatch.setattr(pipeline, "BATCH_LIMIT", 2)
    with receiving(Answer(hangs=True)) as receiver:
        spans = SpanPipeline(target(receiver.url))
        spans.add(SPAN)
        assert receiver.came.acquire(timeout=PATIENCE)
        for _ in range(100):
            spans.add(SPAN)
        waiting = counted(spans, lambda counts: counts.dropped > 0)
        closing = threading.Thread(target=spans.flush, daemon=True)
        closing.start()
        spans.give_up()
        total = counted(spans, lambda counts: counts.dropped > 0)
    closing.join(PATIENCE)

    assert not closing.is_alive()
    assert (waiting.exported, waiting.failed) == (0, 0)
    assert waiting.dropped == 92
    assert waiting.dropped + total.dropped == 101
    assert total.error == "the collector did not answer in time"


def test_the_end_waits_for_no_other_try() -> None:
    """What is refused when the daemon ends is not tried again."""
    with receiving(Answer(status=503, headers={"Retry-After": "20"})) as receiver:
        spans = SpanPipeline(target(receiver.url))
        spans.add(SPAN)
        assert receiver.came.acquire(timeout=PATIENCE)
        close(spans)
        total = counted(spans, lambda counts: counts.failed > 0)

    assert total.failed == 1
    assert len(receiver.requests) == 1


def test_the_environment_of_the_process_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is to be heeded of it was read with the settings."""
    given = {
        "OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:1",
        "OTEL_EXPORTER_OTLP_HEADERS": "x-other=1",
        "OTEL_TRACES_SAMPLER": "always_off",
        "OTEL_BSP_MAX_QUEUE_SIZE": "1",
        "OTEL_BSP_SCHEDULE_DELAY": "never",
        "OTEL_ATTRIBUTE_VALUE_LENGTH_LIMIT": "1",
        "OTEL_SPAN_EVENT_COUNT_LIMIT": "many",
        "OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT": "0",
        "OTEL_EXPORTER_OTLP_TIMEOUT": "soon",
        "OTEL_RESOURCE_ATTRIBUTES": "service.name=other",
    }
    for name, value in given.items():
        monkeypatch.setenv(name, value)
    with receiving() as receiver:
        spans = SpanPipeline(target(receiver.url))
        spans.add(SPAN)
        close(spans)

    assert [span.name for span in receiver.spans] == ["run"]
    assert receiver.spans[0].attributes["error.type"] == "port_exit"
    assert "x-other" not in receiver.requests[0]
    assert receiver.resources[0]["service.name"] == "sortie"


def test_a_receiver_reads_what_was_sent() -> None:
    """The tests' own receiver answers as it is told to."""
    receiver = Receiver([Answer(status=500), Answer()])

    assert [receiver.take({}, b"").status for _ in range(3)] == [500, 200, 200]
