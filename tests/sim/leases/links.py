"""Connections of leaders to hosts, which end what is silent."""

from __future__ import annotations

import trio

from sortie.model import LEASE
from sortie.resources.lease import Lease


class Link:
    """A connection of a leader to a host, which heard of it at ``heard_at`` last."""

    def __init__(self, lease: Lease) -> None:
        self.lease = lease
        self.lost = trio.Event()
        self.heard()

    def heard(self) -> None:
        """Note that something came over it."""
        self.heard_at = trio.current_time()

    @property
    def silent_at(self) -> float:
        """When the host ends what was started over it, unless something comes before."""
        return self.heard_at + LEASE
