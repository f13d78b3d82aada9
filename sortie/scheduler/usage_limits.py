"""Usage limits: times in which the provider of an account refuses all work.

Rule 1: while a limit is in force no run of its account is started; those under way go on.
Rule 2: when it may be over, one run tries that first, until it has used something, or PROBE_TRUST
has passed in its turn without the limit being met again.
Rule 3: a limit is on record as long as it is known, so that a restart forgets none.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from datetime import datetime

from msgspec import Struct
from msgspec.structs import replace

from sortie.model import RunId
from sortie.model.times import rfc3339
from sortie.scheduler.timing import LONGEST_LIMIT, PROBE_TRUST, limit_backoff


class UsageLimit(Struct, frozen=True, kw_only=True):
    """A limit that was met ``times`` in a row, in force until ``until`` (monotonic seconds).

    ``resets_at`` is the time of day when it ends, None where that is unknown. When it is not
    ``backing_off`` any more, ``probe`` is the run that tries whether it is over; that is trusted at
    ``trusted_at``. ``met_here``: a run of this workflow has met it since the daemon began.
    """

    account: str
    message: str
    since: float
    until: float
    resets_at: datetime | None = None
    times: int = 1
    backing_off: bool = True
    probe: RunId | None = None
    trusted_at: float = math.inf
    met_here: bool = False

    @property
    def agent(self) -> str:
        """The kind of agent."""
        return agent_of(self.account)

    @property
    def sentence(self) -> str:
        """Why no run is started, or only one."""
        if not self.backing_off:
            return f"the usage limit of {self.agent} may be over, and one run tries that first"
        end = "nobody said until when, so it is tried again after a while"
        if self.resets_at is not None:
            end = "it ends at " + rfc3339(self.resets_at, "seconds")
        return f"the usage limit of {self.agent} is reached; {end}"

    @property
    def tried_elsewhere(self) -> str:
        """Why no run is started while another workflow is to try whether the limit is over."""
        return (
            f"the usage limit of {self.agent} may be over, and a run of another workflow with the"
            " account tries that first"
        )


def agent_of(account: str) -> str:
    """Return the kind of agent that an account is used by."""
    return account.partition(" ")[0]


class UsageLimits:
    """The limits that are known, by account."""

    def __init__(self, known: Iterable[UsageLimit] = ()) -> None:
        self._known = {limit.account: limit for limit in known}

    def of(self, account: str) -> UsageLimit | None:
        """Return an account's limit, None where none is known."""
        return self._known.get(account)

    def all(self) -> Mapping[str, UsageLimit]:
        """Return every limit that is known, by account."""
        return dict(self._known)

    def met(
        self,
        account: str,
        message: str,
        now: float,
        *,
        resets_at: datetime | None = None,
        seconds: float | None = None,
        met_here: bool = True,
    ) -> UsageLimit | None:
        """Note a limit; return it where it is news.

        ``seconds`` is the time until ``resets_at``, None where that is unknown. Several runs that
        meet one limit at the same time do not prolong its pause, unless they know more of its end.
        """
        if seconds is None or seconds <= 0:
            resets_at = seconds = None
        before = self._known.get(account)
        if before is not None and before.backing_off and resets_at in (None, before.resets_at):
            return None
        again = before is not None and not before.backing_off
        times = before.times + again if before is not None else 1
        delay = limit_backoff(times) if seconds is None else min(seconds, LONGEST_LIMIT)
        limit = UsageLimit(
            account=account,
            message=message,
            since=now if before is None else before.since,
            until=now + delay,
            resets_at=resets_at,
            times=times,
            met_here=met_here,
        )
        self._known[account] = limit
        return limit

    def lift(self, account: str) -> bool:
        """Forget a limit; tell whether there was one."""
        return self._known.pop(account, None) is not None

    def try_with(self, account: str, run_id: RunId) -> None:
        """Let a run that begins try whether the account's limit is over, if it may be."""
        limit = self._known.get(account)
        if limit is not None and not limit.backing_off and limit.probe is None:
            self._known[account] = replace(limit, probe=run_id)

    def turn_began(self, run_id: RunId, now: float) -> None:
        """Note that a run takes its first turn: PROBE_TRUST counts from now."""
        for account, limit in self._known.items():
            if limit.probe == run_id and limit.trusted_at == math.inf:
                self._known[account] = replace(limit, trusted_at=now + PROBE_TRUST)

    def probed_by(self, run_id: RunId) -> str | None:
        """Return the account whose limit a run tries, None where it tries none."""
        return next((a for a, limit in self._known.items() if limit.probe == run_id), None)

    def probe_ended(self, account: str) -> None:
        """Note that the run which tried is over, and has shown nothing."""
        self._known[account] = replace(self._known[account], probe=None, trusted_at=math.inf)

    def pass_time(self, now: float) -> tuple[bool, list[str]]:
        """End the pauses that are over; tell whether one was, and which accounts are trusted."""
        changed = False
        for account, limit in self._known.items():
            if limit.backing_off and limit.until <= now:
                self._known[account] = replace(limit, backing_off=False)
                changed = True
        return changed, [a for a, limit in self._known.items() if limit.trusted_at <= now]

    def end_pause(self, account: str, now: float) -> bool:
        """End a pause early; tell whether there was one."""
        limit = self._known.get(account)
        if limit is None or not limit.backing_off:
            return False
        self._known[account] = replace(limit, backing_off=False, until=min(limit.until, now))
        return True

    def wakeup_at(self) -> float:
        """Return when ``pass_time`` next has something to do; inf: no time will."""
        return min(
            (x.until if x.backing_off else x.trusted_at for x in self._known.values()),
            default=math.inf,
        )
