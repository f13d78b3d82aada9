"""What happens in the daemon, told as facts, and the sinks that log, count and show them."""

from __future__ import annotations

from collections.abc import Callable

from sortie.telemetry.facts import Fact

Publish = Callable[[Fact], None]
"""Takes a fact; returns at once and never raises. Call it from the trio thread."""
