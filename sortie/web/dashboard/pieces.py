"""What a page consists of: elements that are replaced as a whole, and lists of such elements."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Piece:
    """An element with this id, painted by the macro ``kind`` from ``content``.

    Two pieces that are equal look alike, whenever they are painted: what depends on the present
    time is told as a time, from which the browser goes on counting. ``inner`` is an element in it
    that changes more often, and is compared by itself.
    """

    id: str
    kind: str
    content: object
    inner: Piece | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class PieceList:
    """The children, in their order, of the element with this id."""

    id: str
    pieces: tuple[Piece, ...]


Part = Piece | PieceList


def pieces_of(parts: Sequence[Part]) -> Iterator[Piece]:
    """Return all pieces, those in lists included, without what is in other pieces."""
    for part in parts:
        if isinstance(part, Piece):
            yield part
        else:
            yield from part.pieces


def changed(before: Sequence[Part], now: Sequence[Part]) -> Iterator[Piece]:
    """Return the pieces that are new or others than before, and none besides one that it is in."""
    seen = {piece.id: piece for piece in pieces_of(before)}
    for piece in pieces_of(now):
        old = seen.get(piece.id)
        if old != piece:
            yield piece
        elif old is not None and piece.inner is not None and old.inner != piece.inner:
            yield piece.inner
