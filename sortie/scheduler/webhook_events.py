"""What webhooks tell the scheduler."""

from __future__ import annotations

from msgspec import Struct

from sortie.model.webhooks import Mention


class DeliveriesSeen(Struct, frozen=True):
    """Authentic deliveries of a service of this kind have come within the last second or so, the
    first of them ``waited`` seconds ago. ``overflowed``: they named more than ``mentions`` tell."""

    kind: str
    mentions: tuple[Mention, ...]
    waited: float = 0.0
    overflowed: bool = False
