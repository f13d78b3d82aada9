"""The measurements of scheduler and store, small: that they measure what they say."""

from __future__ import annotations

from pathlib import Path

from sortie.store.sqlite import open_store
from tests.benchmarks.local import commit_time, poll_time


def test_a_poll_with_all_slots_taken_is_measured() -> None:
    """The scheduler that is measured has taken as many issues as it has slots."""
    assert poll_time(candidates=100, polls=3) > 0


async def test_each_commit_is_on_disk(tmp_path: Path) -> None:
    """What is measured is written: another opening of the database finds every record."""
    assert await commit_time(tmp_path, records=3, commits=5) > 0

    async with open_store(str(tmp_path / "3.db")) as store:
        assert len((await store.recover()).unfinished) == 15
