"""How notifications stand, as the state shows them."""

from __future__ import annotations

from dataclasses import dataclass

from sortie.model.numbers import counted
from sortie.web.times import Time


@dataclass(frozen=True, slots=True, kw_only=True)
class NotificationTargetView:
    """A target of notifications: how many wait for it, the oldest since when, and how many are
    dead. ``error`` is why it could not be told last, null where it could."""

    target: str
    waiting: int
    oldest_at: Time | None
    dead: int
    error: str | None

    @property
    def words(self) -> str:
        """What it is, for people."""
        since = ""
        if self.oldest_at is not None:
            since = f", the oldest since {self.oldest_at:%Y-%m-%d %H:%M:%S}Z"
        dead = f", {self.dead:,} given up" if self.dead else ""
        why = f": {self.error}" if self.error is not None else ""
        return f"{self.target}: {self.waiting:,} waiting{since}{dead}{why}"

    @property
    def trouble(self) -> str | None:
        """What is wrong with it, None where nothing is."""
        said = []
        if self.error is not None and self.waiting:
            said.append(f"{counted(self.waiting, 'notification')} waiting: {self.error}")
        if self.dead:
            said.append(f"{counted(self.dead, 'notification')} given up")
        return f"{self.target}: {'; '.join(said)}" if said else None
