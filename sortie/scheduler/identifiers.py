"""Ids of runs."""

from __future__ import annotations

from collections.abc import Callable
from uuid import UUID, uuid5

from sortie.model import RunId


def run_ids(life: UUID) -> Callable[[], RunId]:
    """Return a source of run ids that are unique as long as ``life`` is."""
    count = 0

    def new() -> RunId:
        nonlocal count
        count += 1
        return RunId(str(uuid5(life, str(count))))

    return new
