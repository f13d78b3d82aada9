"""What a page consists of: elements that are replaced as a whole, and lists of such elements."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from msgspec import Struct

from sortie.web.broadcaster import Message
from sortie.web.redaction import json_bytes


@dataclass(frozen=True, slots=True)
class Piece:
    """An element with this id, painted by the macro ``kind`` from ``content``.

    Equal pieces look alike whenever they are painted: what depends on the present time is sent as a
    time, from which the browser goes on counting. ``inner`` is an element in it that changes more
    often, and is compared by itself.
    """

    id: str
    kind: str
    content: object
    inner: Piece | None = field(default=None, compare=False)


class PieceList(Struct, frozen=True):
    """The children, in their order, of the element with this id."""

    id: str
    pieces: tuple[Piece, ...]


Part = Piece | PieceList
Paint = Callable[[Piece, float, bool], str]
"""Makes the HTML of a piece at a time in Unix seconds, for operators or for others."""


def pieces_of(parts: Sequence[Part]) -> Iterator[Piece]:
    """Return all pieces, those in lists included, without the inner ones."""
    for part in parts:
        if isinstance(part, Piece):
            yield part
        else:
            yield from part.pieces


def orders_of(parts: Sequence[Part]) -> dict[str, list[str]]:
    """Return the ids in each list, in their order."""
    return {
        part.id: [piece.id for piece in part.pieces]
        for part in parts
        if isinstance(part, PieceList)
    }


def changed(before: Sequence[Part], now: Sequence[Part]) -> Iterator[Piece]:
    """Return the pieces that are new or different; of an unchanged piece its inner one may be."""
    seen = {piece.id: piece for piece in pieces_of(before)}
    for piece in pieces_of(now):
        old = seen.get(piece.id)
        if old != piece:
            yield piece
        elif old is not None and piece.inner is not None and old.inner != piece.inner:
            yield piece.inner


def painted(
    paint: Paint, pieces: Iterable[Piece], orders: dict[str, list[str]], seen: tuple[float, bool]
) -> bytes:
    """Return the JSON that updates a page; ``seen`` is when, and whether by operators.

    ``set`` has the HTML of pieces by their ids, ``order`` the ids in each list, ``now`` the time.
    """
    now, operator = seen
    html = {piece.id: paint(piece, now, operator) for piece in pieces}
    return json_bytes({"now": now, "set": html, "order": orders})


class PageFeed(Struct, kw_only=True):
    """A feed of what ``look`` returns: pieces that have changed, painted once for all listeners.

    ``clock`` gives Unix seconds.
    """

    look: Callable[[], tuple[Part, ...]]
    paint: Paint
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
        data = painted(self.paint, pieces, orders, (self.clock(), self.operator))
        return Message(event="page", data=data)
