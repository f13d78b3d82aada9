"""The event log is written at once, in virtual time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import trio
from trio.testing import MockClock

from sortie.telemetry.event_log import writer


@pytest.fixture
def at_once(autojump_clock: MockClock, monkeypatch: pytest.MonkeyPatch) -> MockClock:
    """Do a thread's work on the spot: virtual time would jump on while it is done."""

    async def run(work: Callable[..., Any], *args: Any, **_: object) -> Any:
        await trio.lowlevel.checkpoint()
        return work(*args)

    monkeypatch.setattr(writer, "run_in_thread", run)
    return autojump_clock
