"""Facts go in, and every sink gets each of them: log, metrics, the board of live runs."""

from __future__ import annotations

from collections.abc import Callable

from sortie.telemetry.facts import Fact

Publish = Callable[[Fact], None]
"""Takes a fact; returns at once and never raises. Call it from the trio thread."""


def fan_out(*sinks: Publish) -> Publish:
    """Return a publisher that gives each fact to all sinks, in order."""

    def publish(fact: Fact) -> None:
        for sink in sinks:
            sink(fact)

    return publish
