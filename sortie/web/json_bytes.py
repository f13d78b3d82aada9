"""Plain data as JSON, as every answer has it."""

from __future__ import annotations

import json


def json_bytes(value: object) -> bytes:
    """Write plain data as JSON in UTF-8; a lone surrogate, as file names may hold, is escaped."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return text.encode(errors="backslashreplace")
