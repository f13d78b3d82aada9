"""structlog without rich, by which it colours tracebacks and which takes two thirds of its loading.

Our lines are made by renderers of our own. structlog does without rich where there is none, and
finds none while it is loaded here; so it is imported from here everywhere.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def _hidden(name: str) -> Iterator[None]:
    """Have a module not found while the block lasts, unless it is loaded already."""
    if name in sys.modules:
        yield
        return
    sys.modules[name] = None  # type: ignore[assignment]  # so the import system has it
    try:
        yield
    finally:
        del sys.modules[name]


with _hidden("rich"):
    import structlog

__all__ = ["structlog"]
