"""Facts about what agents behind a wall reach, and try to reach, in the network."""

from __future__ import annotations

from sortie.facts.fact import RunFact, fact


@fact("network.connection", "debug")
class ConnectionEnded(RunFact, frozen=True, kw_only=True):
    """Connections of a run to a host that it may reach are over.

    ``sent`` and ``received`` are bytes, as the agent sees it. Of many to one host each fact tells
    of as many as all before it together. ``error`` is why the last of them failed.
    """

    host: str
    port: int
    sent: int
    received: int
    connections: int = 1
    error: str | None = None


@fact("network.refused", "info")
class ConnectionRefused(RunFact, frozen=True, kw_only=True):
    """A run was refused what it asked for in the network; of many equal refusals each fact tells
    of as many as all before it together."""

    host: str
    port: int
    reason: str
    connections: int = 1
