"""Commits that failed for their caller and were made all the same, as no answer came.

A caller that writes the same records again is spared those that are on record already. One that
does not repeat what failed loses nothing by that.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from sortie.scheduler.records import Record


class DoubtedCommits:
    """What one store knows of its commits without an answer; ``mark`` names the last one while it
    is not known whether that was made."""

    def __init__(self) -> None:
        self._mark: int | None = None
        self._records: tuple[Record, ...] = ()
        self._made: list[tuple[Record, ...]] = []

    @property
    def is_in_doubt(self) -> bool:
        """Whether it is not known of the last commit if it was made."""
        return self._mark is not None

    def settle(self, is_made: Callable[[int], bool]) -> None:
        """Ask by its mark whether the last commit was made, if that is not known."""
        if self._mark is not None:
            if is_made(self._mark):
                self._made.append(self._records)
            self._mark, self._records = None, ()

    def unmade(self, records: Sequence[Record]) -> Sequence[Record]:
        """Return those that are still to be written: what was made stands first among them."""
        return records[max(map(len, self._repeated(records)), default=0) :]

    def failed(self, records: tuple[Record, ...], mark: int | None) -> None:
        """Note that a commit has failed; ``mark`` is None where it was not made for certain."""
        self._mark, self._records = mark, () if mark is None else records

    def succeeded(self, records: tuple[Record, ...]) -> None:
        """Note that records are on record, and that their caller knows."""
        repeated = self._repeated(records)
        self._made = [made for made in self._made if made not in repeated]

    def _repeated(self, records: Sequence[Record]) -> list[tuple[Record, ...]]:
        return [made for made in self._made if tuple(records[: len(made)]) == made]
