"""The sinks of facts: they write the log, count metrics, and keep what live runs do."""

from __future__ import annotations

from collections.abc import Callable

from sortie import facts as facts
from sortie.facts import Fact

Publish = Callable[[Fact], None]
"""Takes a fact; returns at once and never raises. Call it from the trio thread."""
