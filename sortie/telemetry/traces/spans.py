"""Spans as records, before OpenTelemetry's SDK has them, and the names of what they tell.

Names that begin with ``gen_ai.`` are those of the semantic conventions for generative AI, as of
SCHEMA; those that begin with ``sortie.`` are Sortie's own.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Literal

from msgspec import Struct, field

SCHEMA = "https://opentelemetry.io/schemas/1.37.0"
"""The version of the conventions to which all spans keep."""

Value = str | int | float | bool | Sequence[str] | None
"""What an attribute holds; one that is None is left out."""

SpanKind = Literal["internal", "client"]


class SpanEvent(Struct, frozen=True, kw_only=True):
    """Something that happened within a span, ``at`` Unix nanoseconds."""

    name: str
    at: int
    attributes: Mapping[str, Value] = field(default_factory=dict)


class Span(Struct, frozen=True, kw_only=True):
    """A span that is over; ``start`` and ``end`` are Unix nanoseconds.

    ``error`` is the kind of its failure, None where it has not failed. ``links`` are spans of other
    traces, by trace and span.
    """

    name: str
    trace_id: int
    span_id: int
    parent_id: int | None = None
    start: int
    end: int
    kind: SpanKind = "internal"
    attributes: Mapping[str, Value] = field(default_factory=dict)
    events: Sequence[SpanEvent] = ()
    links: Sequence[tuple[int, int]] = ()
    error: str | None = None


class OpenSpan(Struct, kw_only=True):
    """A span that is under way: what is known of it so far."""

    name: str
    span_id: int
    parent_id: int | None
    start: int
    kind: SpanKind = "internal"
    attributes: dict[str, Value] = field(default_factory=dict)
    events: list[SpanEvent] = field(default_factory=list)
    links: Sequence[tuple[int, int]] = ()
    error: str | None = None

    def over(self, trace_id: int, end: int) -> Span:
        """Return the span as it is over; one whose clock went back has no length."""
        return Span(
            name=self.name,
            trace_id=trace_id,
            span_id=self.span_id,
            parent_id=self.parent_id,
            start=self.start,
            end=max(self.start, end),
            kind=self.kind,
            attributes=self.attributes,
            events=self.events,
            links=self.links,
            error=self.error,
        )

    def tell(self, name: str, at: int, **attributes: Value) -> None:
        """Add an event; beyond EVENT_LIMIT none."""
        if len(self.events) < EVENT_LIMIT:
            told = {f"sortie.{key}": value for key, value in attributes.items()}
            self.events.append(SpanEvent(name=name, at=at, attributes=told))


EVENT_LIMIT = 100
"""Events of a span that are kept."""

AddSpan = Callable[[Span], None]
"""Takes a span that is over; returns at once and never raises."""
