"""Make texts fit for a transcript: without secrets, without what steers a terminal, bounded."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence

from sortie.model.secrets import SHORTEST_SECRET, pattern_of, spellings
from sortie.model.texts import CONTROL, cut

LINE_LIMIT = 16 * 1024
"""Characters of a line; the middle of a longer one is left out."""

PIECE = 64 * 1024
"""Characters of an entry, about, into which what came at once is parted."""

_LONG_LINE = 16


class Cleaner:
    """Cleans texts; the same for every run, since one may print what another was given."""

    def __init__(self, secrets: Collection[str]) -> None:
        known = {part for secret in secrets for part in _parts(secret)}
        self._found = tuple({spelling for secret in known for spelling in spellings(secret)})
        self._pattern = pattern_of(known)

    def all(self, texts: Sequence[str]) -> Sequence[str]:
        """Return texts clean; one look at all of them tells whether there is anything to do."""
        whole = "\n".join(texts)
        return texts if self(whole) == whole else [self(text) for text in texts]

    def __call__(self, text: str) -> str:
        """Return a text of several lines clean, and each line bounded."""
        # To look for each is many times quicker than to match all, and mostly there is none.
        if self._pattern is not None and any(secret in text for secret in self._found):
            text = self._pattern.sub("***", text)
        text = CONTROL.sub("\ufffd", text)
        if len(text) <= LINE_LIMIT:
            return text
        return "\n".join(cut(line, LINE_LIMIT) for line in text.split("\n"))


def pieces(text: str) -> Iterator[str]:
    """Return a text in pieces of whole lines."""
    while len(text) > PIECE:
        end = text.rfind("\n", 0, PIECE)
        end = text.find("\n", PIECE) if end < 0 else end
        if end < 0:
            break
        yield text[:end]
        text = text[end + 1 :]
    yield text


def _parts(secret: str) -> Iterable[str]:
    """Return a secret, and those lines of a longer one that give it away by themselves."""
    lines = [line.strip() for line in secret.splitlines() if not line.startswith("-----")]
    found = [secret.strip(), *(line for line in lines if len(line) >= _LONG_LINE)]
    return [part for part in found if len(part) >= SHORTEST_SECRET]
