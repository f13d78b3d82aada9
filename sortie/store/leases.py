"""How the lease of a workflow stands, as a server tells it."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct


class LeaseStanding(Struct, frozen=True, kw_only=True):
    """How the lease of a workflow stands on the server.

    ``daemon`` and ``name`` are those of its holder, None without one; ``left`` are the seconds
    until it is over, at most 0 afterwards. ``candidates`` are the weights of living daemons that
    would lead the workflow, by their ids.
    """

    workflow: str
    token: int
    daemon: str | None
    name: str | None
    left: float
    candidates: Mapping[str, float]
