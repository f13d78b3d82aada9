"""From positions in a text to the lines and columns that people count."""

from __future__ import annotations

from bisect import bisect_right

from sortie.config import Place


class Lines:
    """The lines of a text whose line ends are ``\\n``; ``source`` is what its file is called."""

    def __init__(self, source: str, text: str) -> None:
        self._source = source
        self._starts = [0, *(i + 1 for i, character in enumerate(text) if character == "\n")]

    def place(self, index: int) -> Place:
        """Return the place of the character at ``index``."""
        line = bisect_right(self._starts, index)
        column = index - self._starts[line - 1] + 1
        return Place(source=self._source, line=line, column=column)
