"""The store in a SQLite file: WAL, and synchronous=FULL."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial

from sortie.store.database_file import open_database
from sortie.store.database_store import DatabaseStore
from sortie.store.database_thread import open_thread

BUSY_TIMEOUT = 5.0
"""Seconds to wait for another process, such as a backup, that locks the database."""


@asynccontextmanager
async def open_store(
    path: str, *, busy_timeout: float = BUSY_TIMEOUT
) -> AsyncIterator[DatabaseStore]:
    """Open the database at ``path``, made with mode 0600 or migrated where needed.

    Raises StoreError for a place or file that cannot serve, a network file system, and a database
    of a newer version. Shutdown waits until all that was handed over is written.
    """
    async with open_thread(partial(open_database, path, busy_timeout)) as thread:
        yield DatabaseStore(thread)
