"""What is counted of transcripts agrees with a recount, after whatever happened."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from trio.testing import MockClock

from sortie.model import RunId
from sortie.telemetry.transcripts import sink
from sortie.telemetry.transcripts.sink import FilePosition, PendingEntries, TranscriptSink
from sortie.telemetry.transcripts.writer import TranscriptLimits
from tests.telemetry.samples import RUN
from tests.telemetry.transcripts.rig import Rig

RUNS = [RunId(f"{number:08d}-2222-3333-4444-555555555555") for number in range(2)]

STEPS = st.lists(
    st.tuples(
        st.sampled_from(["say", "say", "take", "back", "end", "wrote", "none"]),
        st.sampled_from(RUNS),
        st.integers(0, 400),
    ),
    min_size=10,
    max_size=60,
)


def recounted(waiting: PendingEntries) -> int:
    """Return how many characters wait, entry by entry."""
    entries = [*waiting._first, *(waiting._last or ())]
    return sum(len(entry.text) + sink._ENTRY_OVERHEAD for entry in entries)


@given(STEPS)
def test_what_waits_of_all_runs_is_counted_rightly(steps: list[Any]) -> None:
    """Through lost passes, runs that end, and settings that keep nothing any more."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(sink, "_HALF_PENDING", 2000)
        patched.setattr(sink, "WAITING_LIMIT", 5000)
        rig = Rig(Path("/nowhere"))
        taken: list[Any] = []
        for run_id in RUNS:
            rig.begin(run_id)
        for step, run_id, size in steps:
            match step:
                case "say":
                    rig.say("x" * size, run_id)
                case "end":
                    rig.end(run_id)
                case "take":
                    taken += rig.sink.take([run_id] if size % 2 else None)
                case "back" if taken:
                    rig.sink.give_back(*taken.pop())
                case "wrote" if taken:
                    rig.sink.wrote(taken.pop()[0], FilePosition(1, 1))
                case "none" if size < 20:
                    rig.sink.keep(kept=False)
                    rig.sink.keep(kept=True)
            assert rig.sink._waiting == waiting_of(rig.sink)


def waiting_of(collected: TranscriptSink) -> int:
    """Return how many characters wait of all runs, entry by entry."""
    return sum(
        recounted(run.pending) for run in collected._open.values() if run.pending is not None
    )


async def test_what_lies_on_disk_is_counted_rightly(at_once: MockClock, tmp_path: Path) -> None:
    """Through growth, shortened transcripts and forgotten ones: else each pass would look through
    the whole directory, or none would."""
    rig = Rig(tmp_path)
    rig.use(TranscriptLimits(keep_days=0, max_bytes=64 * 4000))
    for number in range(40):
        run_id = RunId(f"{number:08d}-3333-3333-4444-555555555555")
        rig.begin(run_id)
        for _ in range(1 + number % 3):
            rig.say("\n".join(os.urandom(60).hex() for _ in range(60)), run_id)
            await rig.writer.page(run_id, 0, 1)
        rig.end(run_id)
        await rig.writer.page(run_id, 0, 1)
        os.utime(rig.file(run_id), (rig.now + number, rig.now + number))
        on_disk = sum(path.stat().st_size for path in rig.path.iterdir())
        assert rig.writer._stored == on_disk

    assert not rig.file(RunId("00000000-3333-3333-4444-555555555555")).exists()
    assert RUN not in rig.sink.live()
