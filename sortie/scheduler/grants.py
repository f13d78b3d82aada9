"""The slots that a scheduler is granted where several share them, and what it uses of them."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct, field


class SlotGrant(Struct, frozen=True, kw_only=True):
    """``slots`` of the ``total``, and so many on each host; none on others. A later grant has a
    larger ``number``.

    ``common``: the total is that of all daemons of a database, not of one process. ``stale``:
    nothing was heard of the division for too long, and no run is started by the grant.
    ``kept_accounts``: a run of another workflow tries first whether their usage limits are over.
    """

    number: int = 0
    slots: int = 0
    total: int = 0
    hosts: Mapping[str, int] = field(default_factory=dict)
    common: bool = False
    stale: bool = False
    kept_accounts: frozenset[str] = frozenset()

    @property
    def usable(self) -> int:
        """How many runs there may be by it before no more is started."""
        return 0 if self.stale else self.slots

    def on(self, host: str) -> int:
        """Return how many runs may be on a host."""
        return self.hosts.get(host, 0)

    @property
    def sentence(self) -> str:
        """Why no run is started while all slots of the grant are used."""
        if self.stale:
            return (
                "no daemon divides the slots that the daemons of this database share, or none could"
                " be heard: no run is started until one does"
            )
        sharers = "the daemons of this database" if self.common else "this process"
        return (
            f"all {self.total} slots of {sharers} are taken or kept for others; its share is"
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
    """There are other slots for this scheduler; runs under way go on."""

    grant: SlotGrant
