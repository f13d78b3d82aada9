"""Locks of tasks that are nearly always free."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import trio


@asynccontextmanager
async def held(lock: trio.Lock) -> AsyncIterator[None]:
    """Hold a lock in the block; what is free is taken at once.

    ``async with lock`` goes through trio's loop once for that. Where the lock is free this is no
    checkpoint, so the block has to have one.
    """
    try:
        lock.acquire_nowait()
    except trio.WouldBlock:
        await lock.acquire()
    try:
        yield
    finally:
        lock.release()
