"""Representations without the fields that may hold secrets, for tracebacks and test reports."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from msgspec import Struct


def repr_without(*hidden: str) -> Callable[[Any], str]:
    """Return a ``__repr__`` for a Struct that leaves these fields out."""

    def __repr__(self: Struct) -> str:
        shown = [name for name in self.__struct_fields__ if name not in hidden]
        values = ", ".join(f"{name}={getattr(self, name)!r}" for name in shown)
        return f"{type(self).__name__}({values})"

    return __repr__
