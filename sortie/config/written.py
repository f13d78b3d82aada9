"""Settings as a WORKFLOW.md says them: in YAML on one line, with the keys and units of the file."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from enum import Enum
from typing import Any

from pydantic import BaseModel, SecretStr

HIDDEN = "***"
"""Stands for a secret."""

_PLAIN = re.compile(r"(?:[A-Za-z/]|~/|\.{1,2}/)[A-Za-z0-9_./~+@-]*(?: [A-Za-z0-9_./~+@-]+)*")
_WORDS_OF_YAML = frozenset({"true", "false", "null", "yes", "no", "on", "off", "y", "n", "~"})
_MILLISECONDS = "_ms"


def written(value: object) -> str:
    """Return a value as it would stand in the file; of blocks only what is no default."""
    match value:
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case Enum():
            return written(value.value)
        case int():
            return str(value)
        case float():
            return str(int(value)) if value.is_integer() else str(value)
        case SecretStr():
            return HIDDEN
        case str():
            return _text(value)
        case BaseModel():
            return _mapping(dict(written_fields(value, set_only=True)))
        case Mapping():
            return _mapping(value)
        case list() | tuple() | set() | frozenset():
            return f"[{', '.join(map(written, value))}]"
        case _:
            return _text(str(value))


def written_fields(block: BaseModel, *, set_only: bool = False) -> Iterator[tuple[str, Any]]:
    """Yield each key of a block in the file, or each that has no default, and its value in the
    units of the file."""
    for name, info in type(block).model_fields.items():
        key, value = info.alias or name, getattr(block, name)
        if set_only and value == info.get_default(call_default_factory=True):
            continue
        in_milliseconds = key.endswith(_MILLISECONDS) and isinstance(value, float)
        yield key, round(value * 1000) if in_milliseconds else value


def _mapping(values: Mapping[str, object]) -> str:
    return f"{{{', '.join(f'{_text(str(key))}: {written(v)}' for key, v in values.items())}}}"


def _text(text: str) -> str:
    """Return a text without quotes where YAML takes it for the same text."""
    if _PLAIN.fullmatch(text) and text.casefold() not in _WORDS_OF_YAML:
        return text
    return json.dumps(text, ensure_ascii=not text.isprintable())
