"""Plain scalars by the core schema of YAML 1.2 (https://yaml.org/spec/1.2.2/#103-core-schema)."""

from __future__ import annotations

import re

from sortie.documents.tree import Scalar

_NULL = frozenset({"", "~", "null", "Null", "NULL"})
_TRUE = frozenset({"true", "True", "TRUE"})
_FALSE = frozenset({"false", "False", "FALSE"})
_INTEGER = re.compile(r"[-+]?[0-9]+", re.ASCII)
_PREFIXED = re.compile(r"0o[0-7]+|0x[0-9a-fA-F]+", re.ASCII)
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?", re.ASCII)
_INFINITE = re.compile(r"([-+]?)\.(?:inf|Inf|INF)")
_NOT_A_NUMBER = frozenset({".nan", ".NaN", ".NAN"})
_FIRST = frozenset("~nNtTfF.+-0123456789")  # of every text that is no string
_EXACT_DIGITS = 30  # longer whole numbers lose their last digits; no setting takes any of them


def resolve_scalar(text: str) -> Scalar:
    """Return what a plain scalar means."""
    if text and text[0] not in _FIRST:
        return text
    if text in _NULL:
        return None
    if text in _TRUE or text in _FALSE:
        return text in _TRUE
    if _INTEGER.fullmatch(text):
        return int(text) if len(text) <= _EXACT_DIGITS else float(text)
    if _PREFIXED.fullmatch(text):
        return int(text, 0)
    if _FLOAT.fullmatch(text):
        return float(text)
    if infinite := _INFINITE.fullmatch(text):
        return float(f"{infinite[1]}inf")
    return float("nan") if text in _NOT_A_NUMBER else text
