"""Make any value fit for a log: plain, short, and without secrets."""

from __future__ import annotations

import json
import math
from collections.abc import Collection, Mapping, MutableMapping
from typing import Any

from sortie.model import TEXT_LIMIT, cut
from sortie.model.secrets import pattern_of

LOG_VALUE_LIMIT = TEXT_LIMIT
"""Characters of a value that a log line carries at most."""

ITEM_LIMIT = 100
"""Items of a list or mapping that a log line carries at most."""

_DEPTH_LIMIT = 4

Plain = str | int | float | bool | None | list["Plain"] | dict[str, "Plain"]


class Sanitizer:
    """A structlog processor: makes every value plain data, redacted and cut.

    A secret is replaced by ``***`` as it is and as it looks in a ``repr``, in JSON and in a URL.
    The event's name is left alone, since it is a constant of the code.
    """

    def __init__(self, secrets: Collection[str]) -> None:
        self.hide(secrets)

    def hide(self, secrets: Collection[str]) -> None:
        """Hide these secrets, and no others, from now on."""
        self._pattern = pattern_of(secrets)

    def __call__(
        self, _logger: object, _method: str, event: MutableMapping[str, Any]
    ) -> MutableMapping[str, Any]:
        return {key: value if key == "event" else self._fit(value) for key, value in event.items()}

    def _fit(self, value: object) -> Plain:
        """Return a value as plain data that is no longer than a text may be."""
        plain = self.clean(value)
        if not isinstance(plain, list | dict):
            return plain
        whole = json.dumps(plain, ensure_ascii=False)
        return plain if len(whole) <= LOG_VALUE_LIMIT else cut(whole)

    def clean(self, value: object, depth: int = 0) -> Plain:
        """Return a value as plain data: text, number, truth value, None, list or dict."""
        if value is None or isinstance(value, bool):
            return value
        if isinstance(value, int | float):
            return self._number(value)
        if isinstance(value, bytes | bytearray):
            return self._text(value.decode(errors="backslashreplace"))
        if depth < _DEPTH_LIMIT and isinstance(value, Mapping):
            pairs = list(value.items())[:ITEM_LIMIT]
            return {self._text(str(key)): self.clean(item, depth + 1) for key, item in pairs}
        if depth < _DEPTH_LIMIT and isinstance(value, list | tuple | set | frozenset):
            return [self.clean(item, depth + 1) for item in list(value)[:ITEM_LIMIT]]
        return self._text(str(value))

    def _number(self, value: float) -> Plain:
        # A huge integer cannot even be printed, and JSON has no word for infinity.
        if isinstance(value, int) and value.bit_length() > 64:
            return "a huge number"
        if not math.isfinite(value):
            return str(value)
        return "***" if self._pattern and self._pattern.search(str(value)) else value

    def _text(self, text: str) -> str:
        # Redacted before it is cut, so that no half of a secret remains at the cut.
        if self._pattern:
            text = self._pattern.sub("***", text)
        return cut(text)
