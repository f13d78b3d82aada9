"""Usage limits, reckoned beside the scheduler.

Rule: while a limit is in force no run of its account is started, in a later life either; when it
may be over, one run at a time is, until it is known to be over.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from sortie.model import RunId
from sortie.scheduler import records as rec


@dataclass(slots=True)
class LimitsInForce:
    """Accounts with a limit on record, and the runs that try whether it is over."""

    until: dict[str, float] = field(default_factory=dict)
    probes: dict[str, set[RunId]] = field(default_factory=dict)

    def write(self, record: rec.Record, now: float) -> None:
        """Hear what is put on record."""
        match record:
            case rec.RecordLimit(account=account, delay=delay):
                assert delay > 0
                self.until[account] = now + delay
                self.probes[account] = set()
            case rec.ForgetLimit(account=account):
                del self.until[account]
            case rec.RecordExit(run_id=run_id):
                for runs in self.probes.values():
                    runs.discard(run_id)
            case _:
                pass

    def passed(self, account: str, now: float) -> None:
        """Know that the limit's end has come by the time of day."""
        if account in self.until:
            self.until[account] = min(self.until[account], now)

    def start(self, account: str, run_id: RunId, now: float) -> None:
        """Judge the start of a run."""
        if account not in self.until:
            return
        assert now > self.until[account] - 1e-6, "started while its usage limit was in force"
        assert not self.probes[account], "two runs try whether a usage limit is over"
        self.probes[account].add(run_id)
