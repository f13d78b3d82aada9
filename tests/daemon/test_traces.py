"""The task that sees to the export of spans, and a sink that is broken."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import pytest
import trio
from trio.testing import MockClock

from sortie import facts as f
from sortie.daemon import traces
from sortie.daemon.traces import RunTraces
from sortie.facts import Fact
from sortie.telemetry.traces.pipeline import ExportCounts
from sortie.telemetry.traces.sink import TraceSink
from tests.telemetry.samples import RUN_STARTED


class FakePipeline:
    """Has news as it is given, and notes what is asked of it."""

    def __init__(self, *news: ExportCounts | None) -> None:
        self.left = list(news)
        self.asked: list[str] = []

    def news(self) -> ExportCounts | None:
        return self.left.pop(0) if self.left else None

    def flush(self) -> None:
        self.asked.append("flush")

    def give_up(self) -> None:
        self.asked.append("give up")


class FakeSink:
    """Takes facts, or raises."""

    def __init__(self, error: Exception | None = None) -> None:
        self.error = error
        self.taken: list[Fact] = []
        self.closed = 0

    def __call__(self, fact: Fact) -> None:
        self.taken.append(fact)
        if self.error is not None:
            raise self.error

    def hide(self, _secrets: object) -> None:
        pass

    def close(self) -> None:
        self.closed += 1


@pytest.fixture(autouse=True)
def no_thread(monkeypatch: pytest.MonkeyPatch, autojump_clock: MockClock) -> None:
    """Flush without a thread, in which the clock would jump on."""

    async def at_once(work: Callable[[], object], *, abandon_on_cancel: bool) -> None:
        assert abandon_on_cancel
        work()

    monkeypatch.setattr(traces, "run_in_thread", at_once)


def run_traces(pipeline: FakePipeline, sink: FakeSink, told: list[Fact]) -> RunTraces:
    return RunTraces(cast(Any, pipeline), cast(TraceSink, sink), told.append)


async def test_what_became_of_spans_is_told_once_a_minute() -> None:
    """Nothing where nothing has come of any; the last spans are sent at the end."""
    news = ExportCounts(exported=2, dropped=1, failed=3, error="no")
    pipeline, sink, told = FakePipeline(news, None, None, news), FakeSink(), list[Fact]()

    with trio.move_on_after(3.5 * traces.TELL_EVERY):
        await run_traces(pipeline, sink, told).run()

    assert told == [f.SpansExported(exported=2, dropped=1, failed=3, error="no")] * 2
    assert pipeline.asked == ["flush", "give up"]
    assert sink.closed == 1


async def test_a_bug_in_a_span_harms_nothing() -> None:
    """It is told once, with its traceback, and no span is made any more."""
    pipeline, sink, told = FakePipeline(), FakeSink(ZeroDivisionError()), list[Fact]()
    made = run_traces(pipeline, sink, told)

    made(RUN_STARTED)
    made(RUN_STARTED)
    with trio.move_on_after(1):
        await made.run()

    (crash,) = told
    assert isinstance(crash, f.AdapterCrashed)
    assert crash.where == "traces"
    assert "ZeroDivisionError" in crash.traceback
    assert (len(sink.taken), sink.closed) == (1, 0)
    assert pipeline.asked == ["flush", "give up"]
