"""Ids of runs."""

from __future__ import annotations

from uuid import UUID, uuid5

from msgspec import Struct

from sortie.model import RunId


class RunIds(Struct):
    """A source of run ids that are unique as long as ``life`` is; ``count`` of them were taken."""

    life: UUID
    count: int = 0

    def __call__(self) -> RunId:
        """Return a new id."""
        self.count += 1
        return RunId(str(uuid5(self.life, str(self.count))))
