"""Short ways to look into a store."""

from __future__ import annotations

from sortie.store import Store


async def names(store: Store, **page: object) -> list[str]:
    """The ids of the runs on a page of history."""
    return [row.run_id for row in await store.history(**page)]  # type: ignore[arg-type]
