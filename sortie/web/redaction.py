"""Keep secrets out of answers, wherever their texts came from: a title, a line, an error.

Texts are rid of secrets where they come in. This is the one gate where they leave: a row of
history, or an issue of the last poll, may be older than a secret that a reload brought.
"""

from __future__ import annotations

import html
import json
from collections.abc import Callable, Set
from typing import Any

from sortie.model.secrets import SHORTEST_SECRET, redactor, spellings


def json_bytes(value: object) -> bytes:
    """Write plain data as JSON in UTF-8; a lone surrogate, as file names may hold, is escaped."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return text.encode(errors="backslashreplace")


class Redaction:
    """Replaces by ``***`` what ``secrets`` returns at that moment, however it is spelled."""

    def __init__(self, secrets: Callable[[], Set[str]]) -> None:
        self._secrets = secrets
        self._known: Set[str] = frozenset()
        self._spellings: tuple[str, ...] = ()
        self._redacted: Callable[[str], str] = str

    def __call__(self, text: str) -> str:
        """Return a text without secrets."""
        self._renew()
        return self._redacted(text)

    def is_needed(self, text: str) -> bool:
        """Tell whether a secret is in a text, in JSON or in HTML."""
        self._renew()
        return any(spelling in text for spelling in self._spellings)

    def json(self, document: bytes) -> bytes:
        """Return JSON without secrets in its texts; the names of its fields stay."""
        if not self.is_needed(document.decode()):
            return document
        return json_bytes(self._clean(json.loads(document)))

    def _clean(self, value: Any) -> Any:
        if isinstance(value, str):
            return self._redacted(value)
        if isinstance(value, list):
            return [self._clean(item) for item in value]
        if isinstance(value, dict):
            return {name: self._clean(item) for name, item in value.items()}
        return value

    def _renew(self) -> None:
        secrets = self._secrets()
        if secrets == self._known:
            return
        self._known = secrets
        long = [secret for secret in secrets if len(secret) >= SHORTEST_SECRET]
        plain = {spelling for secret in long for spelling in spellings(secret)}
        self._spellings = tuple(plain | {form for text in plain for form in _escaped(text)})
        self._redacted = redactor(long)


def _escaped(text: str) -> tuple[str, str]:
    """Return a text as HTML, once as the standard library escapes it and once as Jinja does."""
    escaped = html.escape(text)
    return escaped, escaped.replace("&quot;", "&#34;").replace("&#x27;", "&#39;")


NOTHING_SECRET = Redaction(frozenset)
"""Replaces nothing."""
