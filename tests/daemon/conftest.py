"""The virtual clock of the daemon's tests."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from trio.testing import MockClock

from tests.worker.rig import clock_that_waits_for_threads


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Iterator[MockClock]:
    """Give a clock that jumps to the next deadline when nothing else is to be done."""
    with clock_that_waits_for_threads(monkeypatch) as clock:
        yield clock
