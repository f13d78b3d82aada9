"""Facts about connections: sums are exact, and a run that hammers makes few."""

from __future__ import annotations

from sortie.facts import Fact
from sortie.facts.network import ConnectionEnded, ConnectionRefused
from sortie.transports.walls.connection_totals import MOST_KINDS, OTHERS, ConnectionTotals
from tests.transports.walls.network import RUN


def test_each_fact_tells_of_as_many_as_all_before_it() -> None:
    """The first is told at once, and nothing is lost at the end."""
    facts: list[Fact] = []
    totals = ConnectionTotals(RUN, facts.append)

    for size in range(7):
        totals.ended("docs.example", 443, sent=size, received=1)
    told = len(facts)
    totals.close()

    assert told == 3
    assert [fact.connections for fact in facts if isinstance(fact, ConnectionEnded)] == [1, 1, 2, 3]
    assert sum(fact.sent for fact in facts if isinstance(fact, ConnectionEnded)) == sum(range(7))


def test_a_million_refusals_are_twenty_facts() -> None:
    """A run cannot fill the log by asking again and again."""
    facts: list[Fact] = []
    totals = ConnectionTotals(RUN, facts.append)

    for _ in range(1_000_000):
        totals.refused("evil.example", 443, "not listed")
    totals.close()

    counts = [fact.connections for fact in facts if isinstance(fact, ConnectionRefused)]
    assert sum(counts) == 1_000_000
    assert len(counts) <= 21


def test_hosts_beyond_a_number_are_told_as_one() -> None:
    """Nor can it by asking for another host each time."""
    facts: list[Fact] = []
    totals = ConnectionTotals(RUN, facts.append)

    for number in range(10_000):
        totals.refused(f"h{number}.evil.example", 443, "not listed")
    totals.close()

    refused = [fact for fact in facts if isinstance(fact, ConnectionRefused)]
    assert len({fact.host for fact in refused}) == MOST_KINDS + 1
    assert sum(fact.connections for fact in refused if fact.host == OTHERS) == 10_000 - MOST_KINDS
    assert len(refused) < MOST_KINDS + 20
