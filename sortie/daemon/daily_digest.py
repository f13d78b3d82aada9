"""The digest of each day: what ended on it, what that has used, and what waits now."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from datetime import date, datetime, timedelta
from zoneinfo import ZoneInfo

import trio
from msgspec import Struct

from sortie.daemon.day_clock import day_of
from sortie.daemon.notification_service import NotificationService
from sortie.facts import NotificationRecorded
from sortie.model import StoreError
from sortie.model.notifications import DAILY_DIGEST
from sortie.notifications import texts
from sortie.orchestrator import Orchestrator
from sortie.store import Store
from sortie.telemetry import Publish

DIGEST_PERIOD = 30.0
"""Seconds from one look at the clock to the next: a day is summed up so soon after its end."""


class DigestParts(Struct, frozen=True):
    """What a digest is made of. ``wall`` returns Unix seconds."""

    service: NotificationService
    orchestrator: Orchestrator
    store: Store
    publish: Publish
    wall: Callable[[], float] = time.time


async def keep_digests(parts: DigestParts) -> None:
    """Have yesterday summed up, once, whenever a day has begun; until cancelled.

    A daemon that was not there at midnight sums yesterday up when it starts.
    """
    done = None
    while True:
        zone = parts.orchestrator.settings.budget.timezone
        today = day_of(zone, parts.wall())
        if done != today and parts.service.maker.wants(DAILY_DIGEST):
            with suppress(StoreError):  # the journal tells of it
                await sum_up(parts, date.fromisoformat(today) - timedelta(days=1), zone)
                done = today
        await trio.sleep(DIGEST_PERIOD)


async def sum_up(parts: DigestParts, day: date, zone: str) -> None:
    """Record the digest of a day, unless it is there already, or nothing is to be told."""
    outbox, key = parts.service.outbox, f"{DAILY_DIGEST}:{day.isoformat()}"
    if await outbox.is_known(key):
        return
    end = _midnight(day + timedelta(days=1), zone)
    runs = await outbox.runs_between(_midnight(day, zone), end)
    snapshot = parts.orchestrator.snapshot()
    if not runs and not snapshot.held:
        return
    spent = await parts.store.spent_on(day.isoformat())
    told = texts.daily_digest(
        day.isoformat(), runs, spent, len(snapshot.held), len(snapshot.waiting)
    )
    record = parts.service.maker.alone(DAILY_DIGEST, told, key=key)
    if record is not None:
        await parts.store.commit([record], parts.wall())
        parts.publish(NotificationRecorded(about=DAILY_DIGEST, targets=record.targets))


def _midnight(day: date, zone: str) -> float:
    return datetime(day.year, day.month, day.day, tzinfo=ZoneInfo(zone)).timestamp()
