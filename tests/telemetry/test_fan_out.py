"""Fanning out: every sink gets every fact."""

from __future__ import annotations

from sortie.telemetry import fan_out
from sortie.telemetry.facts import Fact
from tests.telemetry.samples import FACTS


def test_every_sink_gets_every_fact_in_order() -> None:
    """Facts reach all sinks, in the order of publication and of the sinks."""
    received: list[tuple[str, Fact]] = []
    publish = fan_out(
        lambda fact: received.append(("first", fact)),
        lambda fact: received.append(("second", fact)),
    )

    for fact in FACTS[:2]:
        publish(fact)

    assert received == [
        ("first", FACTS[0]),
        ("second", FACTS[0]),
        ("first", FACTS[1]),
        ("second", FACTS[1]),
    ]
