"""Tells what a run's connections were, in a bounded number of facts.

Rule 1: the first connection of a kind is told when it is over, and then as many at a time as all
before them together; what is left is told at the end. So sums are exact, and a run that asks a
million times makes twenty facts.
Rule 2: a run that asks for more than MOST_KINDS different things has the rest told as one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from sortie.facts.fact import Fact
from sortie.facts.network import ConnectionEnded, ConnectionRefused
from sortie.model import RunId

MOST_KINDS = 100
"""Hosts and ports, allowed and refused, that are told apart in one run."""

OTHERS = "others"
"""What stands in the place of a host that is not told apart."""


@dataclass(slots=True)
class _Total:
    told: int = 0
    connections: int = 0
    sent: int = 0
    received: int = 0
    last: str | None = None


class ConnectionTotals:
    """Sums the connections of one run, and tells facts of them."""

    def __init__(self, run_id: RunId, tell: Callable[[Fact], None]) -> None:
        self._run_id = run_id
        self._tell = tell
        self._totals: dict[tuple[str, int, bool], _Total] = {}

    def ended(
        self, host: str, port: int, *, sent: int, received: int, error: str | None = None
    ) -> None:
        """Count a connection that was allowed; ``error`` is why it failed, if it did."""
        self._count((host, port, True), sent, received, error)

    def refused(self, host: str, port: int, reason: str) -> None:
        """Count what was refused; "" and 0 where it is not known for which host it was."""
        self._count((host, port, False), 0, 0, reason)

    def close(self) -> None:
        """Tell what was not told yet."""
        for key, total in self._totals.items():
            if total.connections:
                self._flush(key, total)

    def _count(
        self, key: tuple[str, int, bool], sent: int, received: int, last: str | None
    ) -> None:
        if key not in self._totals and len(self._totals) >= MOST_KINDS:
            key = (OTHERS, 0, key[2])
        total = self._totals.setdefault(key, _Total())
        total.connections += 1
        total.sent += sent
        total.received += received
        total.last = last
        if total.connections >= total.told:
            self._flush(key, total)

    def _flush(self, key: tuple[str, int, bool], total: _Total) -> None:
        host, port, allowed = key
        fact: Fact
        if allowed:
            fact = ConnectionEnded(
                run_id=self._run_id,
                host=host,
                port=port,
                sent=total.sent,
                received=total.received,
                connections=total.connections,
                error=total.last,
            )
        else:
            fact = ConnectionRefused(
                run_id=self._run_id,
                host=host,
                port=port,
                reason=total.last or "",
                connections=total.connections,
            )
        told = total.told + total.connections
        self._totals[key] = _Total(told=told)
        self._tell(fact)
