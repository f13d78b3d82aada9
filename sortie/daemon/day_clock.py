"""What day it is by the zone of the settings, and what else ends by the time of day."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import datetime
from zoneinfo import ZoneInfo

import trio

from sortie.model import NOTHING, StoreError
from sortie.orchestrator import Orchestrator
from sortie.scheduler import events as ev
from sortie.store import Store
from sortie.telemetry.log.structlog_alone import structlog

CLOCK_PERIOD = 15.0
"""Seconds from one look at the clock to the next: a new day is known by then."""

log = structlog.get_logger()


def day_of(zone: str, at: float) -> str:
    """Return the day, as 2026-11-22, that a time in Unix seconds falls on in a zone."""
    return datetime.fromtimestamp(at, ZoneInfo(zone)).date().isoformat()


async def keep_days(
    orchestrator: Orchestrator,
    store: Store,
    wall: Callable[[], float] = time.time,
    *,
    task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED,
) -> None:
    """Tell the orchestrator of each day, the present one first, and of limits that have ended.

    The clock may be set, the machine may sleep, and a reload may change the zone: so it is looked
    at again and again, and no time is waited for.
    """
    known = None
    while True:
        day = day_of(orchestrator.settings.budget.timezone, wall())
        if day != known:
            known = await _tell_of(day, orchestrator, store)
        task_status.started()
        task_status = trio.TASK_STATUS_IGNORED
        limit = orchestrator.usage_limit
        resets_at = limit.resets_at if limit is not None and limit.backing_off else None
        if limit is not None and resets_at is not None and wall() >= resets_at.timestamp():
            orchestrator.tell(ev.UsageLimitPassed(limit.account))
        await trio.sleep(CLOCK_PERIOD)


async def _tell_of(day: str, orchestrator: Orchestrator, store: Store) -> str | None:
    """Tell of a day, with what was used on it before; return it, None where nobody can say."""
    try:
        spent = await store.spent_on(day)
    except StoreError as exc:
        log.warning("day.unknown", day=day, error=str(exc))
        return None
    orchestrator.tell(ev.DayBegan(day, spent or NOTHING))
    return day
