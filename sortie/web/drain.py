"""The port between HTTP and the drain of a process, and the view that programs get."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, Protocol

DrainStatus = Literal["leading", "standby", "draining", "drained"]


@dataclass(frozen=True, slots=True, kw_only=True)
class DrainView:
    """How this process stands among the daemons of its database: it ``leads`` workflows, in which
    ``running`` runs are under way. ``alone`` are those of them that no other daemon would lead."""

    daemon: str
    status: DrainStatus
    leads: tuple[str, ...]
    running: int
    alone: tuple[str, ...] = ()


class DrainSource(Protocol):
    """A process that can be drained; a sentence instead of a view says why it cannot."""

    def standing(self) -> DrainView | str:
        """Return how the process stands."""
        ...

    async def drain(self, *, draining: bool) -> DrainView | str | None:
        """Lead nothing any more, or lead again; None: it is not on record yet."""
        ...


class NoLeases:
    """A process whose databases are files, which is led by nothing else."""

    def standing(self) -> DrainView | str:
        """See DrainSource."""
        return (
            "no other daemon can take the workflows of this process over, as their databases are"
            " files: store.url is not set; stop the daemon instead"
        )

    async def drain(self, *, draining: bool) -> DrainView | str | None:  # noqa: ARG002
        """See DrainSource."""
        return self.standing()
