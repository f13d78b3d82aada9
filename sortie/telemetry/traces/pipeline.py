"""Hands spans to OpenTelemetry's SDK, which sends them from a thread of its own.

Rule 1: to add a span never waits, and takes the same time whatever the collector does.
Rule 2: at most QUEUE_LIMIT spans wait; others are dropped and counted.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Mapping

from msgspec import Struct
from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import SpanLimits, SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.sdk.trace.id_generator import IdGenerator
from opentelemetry.sdk.trace.sampling import ALWAYS_ON
from opentelemetry.sdk.version import __version__ as sdk_version

from sortie import __version__
from sortie.config.traces import TraceTarget
from sortie.telemetry.traces.exporter import OtlpExporter
from sortie.telemetry.traces.spans import SCHEMA, Span

QUEUE_LIMIT = 4096
BATCH_LIMIT = 256
SEND_EVERY = 2.0
"""Seconds that a span waits at most before it is sent, where nothing holds it up."""

_KINDS = {"internal": trace.SpanKind.INTERNAL, "client": trace.SpanKind.CLIENT}
_NO_LIMITS = SpanLimits(
    max_attributes=SpanLimits.UNSET,
    max_events=SpanLimits.UNSET,
    max_links=SpanLimits.UNSET,
    max_span_attributes=SpanLimits.UNSET,
    max_event_attributes=SpanLimits.UNSET,
    max_link_attributes=SpanLimits.UNSET,
    max_attribute_length=SpanLimits.UNSET,
    max_span_attribute_length=SpanLimits.UNSET,
)
"""What comes here is bounded; each limit that is not given would be read from a variable."""

_SAMPLED = trace.TraceFlags(trace.TraceFlags.SAMPLED)


class _GivenIds(IdGenerator):
    """Gives the span that is made next the ids that it is to have."""

    def __init__(self) -> None:
        self.trace_id = self.span_id = 0

    def generate_trace_id(self) -> int:
        return self.trace_id

    def generate_span_id(self) -> int:
        return self.span_id


class ExportCounts(Struct, frozen=True, kw_only=True):
    """How many spans were taken by the collector, found no room, and were not taken."""

    exported: int = 0
    dropped: int = 0
    failed: int = 0
    error: str | None = None


class SdkSpans:
    """Makes spans of the SDK, each finished at once; use it in one thread."""

    def __init__(self, processor: SpanProcessor, resource: Mapping[str, str | int]) -> None:
        self._ids = _GivenIds()
        self._provider = TracerProvider(
            sampler=ALWAYS_ON,  # only spans that are wanted come here
            resource=Resource(resource, SCHEMA),
            shutdown_on_exit=False,
            id_generator=self._ids,
            span_limits=_NO_LIMITS,
        )
        self._provider.add_span_processor(processor)
        self._tracer = self._provider.get_tracer("sortie", __version__, schema_url=SCHEMA)

    def add(self, span: Span) -> None:
        """Make a span, with the ids and times that it has."""
        self._ids.trace_id, self._ids.span_id = span.trace_id, span.span_id
        made = self._tracer.start_span(
            span.name,
            context=_parent(span),
            kind=_KINDS[span.kind],
            attributes={key: value for key, value in span.attributes.items() if value is not None},
            links=[trace.Link(_context(*link)) for link in span.links],
            start_time=span.start,
        )
        for event in span.events:
            known = {key: value for key, value in event.attributes.items() if value is not None}
            made.add_event(event.name, known, event.at)
        if span.error is not None:
            made.set_attribute("error.type", span.error)
            made.set_status(trace.Status(trace.StatusCode.ERROR, span.error))
        made.end(span.end)

    def shutdown(self) -> None:
        """Let the processor go."""
        self._provider.shutdown()


class SpanPipeline:
    """Takes spans, and has them sent to a collector."""

    def __init__(self, target: TraceTarget) -> None:
        self._exporter = OtlpExporter(target)
        self._processor = BatchSpanProcessor(
            self._exporter,
            max_queue_size=QUEUE_LIMIT,
            schedule_delay_millis=SEND_EVERY * 1000,
            max_export_batch_size=BATCH_LIMIT,
            export_timeout_millis=30_000,  # given, so that no variable is read; it is not used
        )
        self._spans = SdkSpans(self._processor, _resource(target))
        self._added = self._dropped = 0
        self._told = ExportCounts()

    def add(self, span: Span) -> None:
        """Take a span, or drop it where too many wait."""
        if self._added - self._exporter.taken >= QUEUE_LIMIT:
            self._dropped += 1
            return
        self._added += 1
        self._spans.add(span)

    def news(self) -> ExportCounts | None:
        """Return what became of spans since this was asked last, None where that is nothing."""
        now = ExportCounts(
            exported=self._exporter.exported, dropped=self._dropped, failed=self._exporter.failed
        )
        before, self._told = self._told, now
        lost = now.dropped + now.failed > before.dropped + before.failed
        if now == before:
            return None
        return ExportCounts(
            exported=now.exported - before.exported,
            dropped=now.dropped - before.dropped,
            failed=now.failed - before.failed,
            error=self._exporter.error if lost else None,
        )

    def flush(self) -> None:
        """Send what waits, and nothing after that; call it in a thread, as it may take long."""
        self._exporter.hurry()
        self._spans.shutdown()

    def give_up(self) -> None:
        """Drop what is not sent, and what is being sent: the time for that is over."""
        self._exporter.give_up()
        if left := self._added - self._exporter.exported - self._exporter.failed:
            self._dropped += left
            self._exporter.error = self._exporter.error or "the collector did not answer in time"


def _resource(target: TraceTarget) -> dict[str, str | int]:
    return {
        "service.version": __version__,
        "host.name": socket.gethostname(),
        **target.resource,
        "service.name": target.service,
        "process.pid": os.getpid(),
        "telemetry.sdk.language": "python",
        "telemetry.sdk.name": "opentelemetry",
        "telemetry.sdk.version": sdk_version,
    }


def _context(trace_id: int, span_id: int) -> trace.SpanContext:
    return trace.SpanContext(trace_id, span_id, is_remote=False, trace_flags=_SAMPLED)


def _parent(span: Span) -> Context:
    """Return the context in which a span is made; never that of the task."""
    if span.parent_id is None:
        return Context()
    parent = trace.NonRecordingSpan(_context(span.trace_id, span.parent_id))
    return trace.set_span_in_context(parent, Context())
