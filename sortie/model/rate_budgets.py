"""What a service still lets its credential ask."""

from __future__ import annotations

from datetime import datetime

from msgspec import Struct


class RateBudget(Struct, frozen=True, kw_only=True):
    """What a service still lets its credential ask: ``remaining`` of ``limit`` until ``resets_at``.

    ``name`` is a short word for what is counted, such as ``requests`` or ``search``, and the same
    for ever: it is a label of metrics. ``resets_at`` is an aware time by this machine's clock. What
    the service did not say is None.
    """

    name: str
    remaining: int | None = None
    limit: int | None = None
    resets_at: datetime | None = None
