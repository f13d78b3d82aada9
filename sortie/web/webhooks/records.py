"""What has come of each kind of webhook since the process began; times are Unix seconds."""

from __future__ import annotations

from msgspec import Struct, field

from sortie.facts.webhooks import Rejection


class RejectedDeliveries(Struct, kw_only=True):
    """How many deliveries were not taken for a reason, and when the last one came."""

    count: int = 0
    last_at: float = 0.0


class KindRecord(Struct, kw_only=True):
    """The deliveries of one kind; ``last_at`` is None where none was taken yet."""

    received: int = 0
    last_at: float | None = None
    rejected: dict[Rejection, RejectedDeliveries] = field(default_factory=dict)
