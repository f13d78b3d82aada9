"""Open the store that the settings name: a file, or a schema on a server."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager
from importlib import import_module
from typing import Any

from sortie.config.settings import Settings
from sortie.model import StoreError
from sortie.resources.lease import Lease
from sortie.store.database_store import DatabaseStore
from sortie.store.sqlite import open_store


def store_of(
    settings: Settings, lease: Lease | None = None
) -> AbstractAsyncContextManager[DatabaseStore]:
    """Return the store to enter; what is on a server is written for a lease.

    Raises StoreError, as entering it does.
    """
    if settings.store.url is None:
        return open_store(settings.db_path)
    postgres = postgres_module()
    opened: AbstractAsyncContextManager[DatabaseStore] = postgres.open_postgres_store(
        postgres.address_of(settings.store), lease
    )
    return opened


def postgres_module() -> Any:
    """Return the module of PostgreSQL, which is loaded only where it is used.

    Raises StoreError where psycopg, or the library behind it, cannot be loaded.
    """
    try:
        return import_module("sortie.store.postgres")
    except ImportError as error:
        raise StoreError(
            "store.url needs psycopg, which cannot be loaded: pip install 'sortie[postgres]'"
            f" ({error})"
        ) from error
