"""Keep secrets out of what is answered, wherever they came from: a title, a line of output.

Rule: a text is only searched for what makes it longer where one of the secrets is in it, which is
next to never: so a look at each answer costs next to nothing.
"""

from __future__ import annotations

import html
import json
from collections.abc import Callable, Set
from typing import Any

from sortie.model.secrets import SHORTEST_SECRET, redactor, spellings
from sortie.web.json_bytes import json_bytes


class Redaction:
    """Replaces by ``***`` what ``secrets`` returns at that moment, however it is spelled."""

    def __init__(self, secrets: Callable[[], Set[str]]) -> None:
        self._secrets = secrets
        self._known: Set[str] = frozenset()
        self._found: tuple[str, ...] = ()
        self._encoded: tuple[bytes, ...] = ()
        self._redacted: Callable[[str], str] = str

    def __call__(self, text: str) -> str:
        """Return a text without secrets."""
        self._look()
        return self._redacted(text) if any(found in text for found in self._found) else text

    def is_needed(self, text: str) -> bool:
        """Tell whether a secret is in a text; also in one of HTML."""
        self._look()
        return any(found in text for found in self._found)

    def json(self, document: bytes) -> bytes:
        """Return JSON without secrets in its texts; the names of its fields stay."""
        self._look()
        if not any(found in document for found in self._encoded):
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

    def _look(self) -> None:
        secrets = self._secrets()
        if secrets == self._known:
            return
        self._known = secrets
        long = [secret for secret in secrets if len(secret) >= SHORTEST_SECRET]
        found = {spelling for secret in long for spelling in spellings(secret)}
        found |= {form for spelling in found for form in _escaped(spelling)}
        self._found = tuple(sorted(found))
        self._encoded = tuple(text.encode(errors="surrogatepass") for text in self._found)
        self._redacted = redactor(long)


def _escaped(text: str) -> tuple[str, str]:
    """Return a text as the two escape it that write HTML: the standard library, and Jinja."""
    plain = html.escape(text)
    return plain, plain.replace("&quot;", "&#34;").replace("&#x27;", "&#39;")


NOTHING_SECRET = Redaction(frozenset)
"""Replaces nothing."""
