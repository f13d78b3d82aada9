"""JSON of answers, and how secrets are kept out of it, wherever its texts came from.

Texts are rid of secrets where they come in. They are once more where they leave, here and in the
painter of pages: a row of history, or an issue of the last poll, may be older than a secret that a
reload brought.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Set
from typing import Any

from sortie.model.secrets import redactor

Secrets = Callable[[], Set[str]]
"""Returns the secrets in force."""


def json_bytes(value: object) -> bytes:
    """Write plain data as JSON in UTF-8; a lone surrogate, as file names may hold, is escaped."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return text.encode(errors="backslashreplace")


def without_secrets(document: bytes, secrets: Set[str]) -> bytes:
    """Return JSON with ``***`` for each secret in its texts; the names of its fields stay."""
    redact, text = redactor(secrets), document.decode()
    return document if redact(text) == text else json_bytes(_redacted(json.loads(text), redact))


def _redacted(value: Any, redact: Callable[[str], str]) -> Any:
    if isinstance(value, str):
        return redact(value)
    if isinstance(value, list):
        return [_redacted(item, redact) for item in value]
    if isinstance(value, dict):
        return {name: _redacted(item, redact) for name, item in value.items()}
    return value
