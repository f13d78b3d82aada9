"""Forget runs that history need not keep any longer, a few at a time."""

from __future__ import annotations

import time
from collections.abc import Callable

import trio

from sortie.model import StoreError
from sortie.store import Store
from sortie.telemetry.log.structlog_alone import structlog

PRUNE_PERIOD = 3600.0
"""Seconds from one look for old runs to the next; a changed setting is obeyed by then."""

FORGOTTEN_AT_ONCE = 200
"""Runs that are forgotten in one transaction: some milliseconds, while records wait."""

_BATCH_PAUSE = 0.2  # between two of them, in which records have their turn
_SECONDS_OF_DAY = 86_400.0

log = structlog.get_logger()


async def prune_history(
    store: Store, keep_days: Callable[[], int], wall: Callable[[], float] = time.time
) -> None:
    """Forget old runs now and every PRUNE_PERIOD, for ever; ``keep_days`` 0 keeps them all.

    Where the database cannot be written, the next look tries again.
    """
    while True:
        if days := keep_days():
            forgotten = await _forget(store, wall() - days * _SECONDS_OF_DAY)
            if forgotten:
                log.info("history.pruned", runs=forgotten, keep_days=days)
        await trio.sleep(PRUNE_PERIOD)


async def _forget(store: Store, before: float) -> int:
    total = 0
    try:
        while forgotten := await store.forget_runs(before, FORGOTTEN_AT_ONCE):
            total += forgotten
            await trio.sleep(_BATCH_PAUSE)
    except StoreError as exc:
        log.warning("history.not_pruned", error=str(exc))
    return total
