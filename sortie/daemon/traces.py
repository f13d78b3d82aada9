"""The spans of a daemon's runs: made, sent, and told of where they are lost."""

from __future__ import annotations

import time
import traceback
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING

import trio

from sortie import agents
from sortie.config.traces import trace_target
from sortie.facts import Fact
from sortie.resources import Shortage, run_in_thread
from sortie.telemetry import Publish, facts
from sortie.workflow.loader import Workflow

if TYPE_CHECKING:
    from sortie.telemetry.traces.pipeline import SpanPipeline
    from sortie.telemetry.traces.sink import TraceSink

TELL_EVERY = 60.0
"""Seconds between two facts about what became of spans."""

FLUSH_SECONDS = 2.0
"""Seconds in which the last spans have to be sent, when the daemon ends."""


class RunTraces:
    """The sink, and the task that sees to the export."""

    def __init__(self, pipeline: SpanPipeline, sink: TraceSink, publish: Publish) -> None:
        self.hide = sink.hide
        self._sink = sink
        self._pipeline = pipeline
        self._publish = publish
        self._has_crashed = False

    def __call__(self, fact: Fact) -> None:
        """Make spans of a fact, as a sink; after a bug in that, or in the SDK, of none any more."""
        if not self._has_crashed:
            self._guarded(self._sink, fact)

    def _guarded(self, act: Callable[..., None], *args: Fact) -> None:
        try:
            act(*args)
        except Exception:  # the edge: no run ends because of its spans
            self._has_crashed = True
            self._publish(facts.AdapterCrashed(where="traces", traceback=traceback.format_exc()))

    async def run(self) -> None:
        """Tell now and then what became of spans, until cancelled; then send what is left."""
        try:
            while True:
                await trio.sleep(TELL_EVERY)
                self._tell()
        finally:
            if not self._has_crashed:
                self._guarded(self._sink.close)
            with trio.move_on_after(FLUSH_SECONDS, shield=True), suppress(Shortage):
                await run_in_thread(self._pipeline.flush, abandon_on_cancel=True)
            self._pipeline.give_up()
            self._tell()

    def _tell(self) -> None:
        if (news := self._pipeline.news()) is not None:
            self._publish(
                facts.SpansExported(
                    exported=news.exported,
                    dropped=news.dropped,
                    failed=news.failed,
                    error=news.error,
                )
            )


def run_traces(
    workflow: Workflow, environ: Mapping[str, str], publish: Publish
) -> RunTraces | None:
    """Return what makes and sends spans; None, and nothing is loaded, where none are wanted, or
    OpenTelemetry's own variable switches all of it off."""
    traces = workflow.settings.traces
    if traces is None or environ.get("OTEL_SDK_DISABLED", "").strip().lower() == "true":
        return None
    from sortie.telemetry.traces.pipeline import SpanPipeline
    from sortie.telemetry.traces.sink import TracedWorkflow, TraceSink

    pipeline = SpanPipeline(trace_target(traces, environ.get))
    told = TracedWorkflow(
        name=str(workflow.path),
        sample=traces.sample,
        content=traces.content,
        provider_of=lambda kind: agents.ADAPTERS.load(kind).provider or kind,
        wall=time.time_ns,
    )
    return RunTraces(pipeline, TraceSink(told, pipeline.add), publish)
