"""The slots that a scheduler is granted where several share a process, and what it uses of them."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct, field


class SlotGrant(Struct, frozen=True, kw_only=True):
    """``slots`` of the ``total`` of a process, and so many on each host; none on others. A later
    grant has a larger ``number``."""

    number: int = 0
    slots: int = 0
    total: int = 0
    hosts: Mapping[str, int] = field(default_factory=dict)

    def on(self, host: str) -> int:
        """Return how many runs may be on a host."""
        return self.hosts.get(host, 0)

    @property
    def sentence(self) -> str:
        """Why no run is started while all slots of the grant are used."""
        return (
            f"all {self.total} slots of this process are taken or kept for others; its share is"
            f" {self.slots}"
        )


class SlotUse(Struct, frozen=True, kw_only=True):
    """What a scheduler has and wants: ``used`` slots, and ``more`` issues that would start now if
    the process and the hosts had room. ``grant`` is what is in force in it."""

    used: int = 0
    by_host: Mapping[str, int] = field(default_factory=dict)
    more: int = 0
    more_by_host: Mapping[str, int] = field(default_factory=dict)
    grant: SlotGrant = SlotGrant()


class SlotsGranted(Struct, frozen=True):
    """The process has other slots for this scheduler; runs under way go on."""

    grant: SlotGrant
