"""An empty store of each kind."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path

import pytest

from sortie.store import (
    Store,
)
from sortie.store.memory import MemoryStore
from sortie.store.sqlite import open_store


@asynccontextmanager
async def _sqlite(directory: Path) -> AsyncIterator[Store]:
    async with open_store(str(directory / "sortie.db")) as store:
        yield store


@asynccontextmanager
async def _memory(directory: Path) -> AsyncIterator[Store]:
    yield MemoryStore()


OPENERS: dict[str, Callable[[Path], AbstractAsyncContextManager[Store]]] = {
    "sqlite": _sqlite,
    "memory": _memory,
}


@pytest.fixture(params=OPENERS)
async def store(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Store]:
    """An empty store."""
    async with OPENERS[request.param](tmp_path) as opened:
        yield opened
