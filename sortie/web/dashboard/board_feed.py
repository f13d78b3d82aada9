"""The overview as live events: the pieces that have changed, painted once for all who look.

The event ``page`` is JSON: ``set`` has the HTML of each piece that is new or different by its id,
``order`` the ids in each list whose pieces are others or stand otherwise, and ``now`` the time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from sortie.web.broadcaster import Message
from sortie.web.dashboard.painter import Painter
from sortie.web.dashboard.pieces import Part, Piece, PieceList, changed, pieces_of
from sortie.web.json_bytes import json_bytes


@dataclass(slots=True, kw_only=True)
class BoardFeed:
    """A feed of what ``look`` returns, for operators or for those who may only look.

    ``clock`` gives Unix seconds.
    """

    look: Callable[[], tuple[Part, ...]]
    painter: Painter
    clock: Callable[[], float]
    operator: bool
    parts: tuple[Part, ...] | None = None

    def changes(self) -> Sequence[Message]:
        """See Feed."""
        before, now = self.parts, self.look()
        self.parts = now
        if before is None:
            return ()
        pieces = tuple(changed(before, now))
        orders = orders_of(before)
        moved = {id_: ids for id_, ids in orders_of(now).items() if orders.get(id_) != ids}
        return (self._message(pieces, moved),) if pieces or moved else ()

    def whole(self) -> Sequence[Message]:
        """See Feed."""
        parts = self.look() if self.parts is None else self.parts
        return (self._message(pieces_of(parts), orders_of(parts)),)

    def _message(self, pieces: Iterable[Piece], orders: dict[str, list[str]]) -> Message:
        told = painted(self.painter, pieces, orders, (self.clock(), self.operator))
        return Message(event="page", data=json_bytes(told))


def painted(
    painter: Painter,
    pieces: Iterable[Piece],
    orders: dict[str, list[str]],
    seen: tuple[float, bool],
) -> dict[str, object]:
    """Return what a browser is told of these pieces; ``seen`` is when, and whether by operators."""
    now, operator = seen
    return {
        "now": now,
        "set": {piece.id: painter.paint(piece, now, operator) for piece in pieces},
        "order": orders,
    }


def orders_of(parts: Sequence[Part]) -> dict[str, list[str]]:
    """Return the ids in each list, in their order."""
    return {
        part.id: [piece.id for piece in part.pieces]
        for part in parts
        if isinstance(part, PieceList)
    }
