"""Checks of ``sortie doctor`` that are the same for every tracker over HTTP."""

from __future__ import annotations

from datetime import UTC, datetime

import trio

from sortie.http.client import HttpClient
from sortie.model.checks import Check, CheckResult, passed, warned

TRACKER_CLOCK_TOLERANCE = 60.0
"""Seconds by which this machine's clock may differ from the tracker's without a warning."""


def clock_check(client: HttpClient, needs: str = "reach") -> Check:
    """Compare the clocks by the last answer; asks nothing."""

    async def ask() -> CheckResult:
        await trio.lowlevel.checkpoint()
        if client.server_time is None:
            return passed(f"{client.provider} does not tell its time")
        ahead = (datetime.now(UTC) - client.server_now()).total_seconds()
        if abs(ahead) <= TRACKER_CLOCK_TOLERANCE:
            return passed(f"this machine's clock is right, by {client.provider}'s")
        direction = "ahead of" if ahead > 0 else "behind"
        return warned(
            f"this machine's clock is {abs(ahead):.0f} s {direction} {client.provider}'s",
            "set the clock, or have it set by NTP: until then times in logs and history are wrong, "
            "and a GitHub App may be refused",
        )

    return Check(name="clock", ask=ask, needs=(needs,))


def budget_check(client: HttpClient, needs: str = "reach") -> Check:
    """Tell what the last answers said of limits; asks nothing."""

    async def ask() -> CheckResult:
        await trio.lowlevel.checkpoint()
        budgets = client.budgets()
        if not budgets:
            return passed(f"{client.provider} tells of no limit")
        told = "; ".join(
            f"{b.remaining} of {b.limit or 'an unknown number of'} {b.name} are left"
            for b in budgets
        )
        if any(b.limit and b.remaining is not None and b.remaining * 10 < b.limit for b in budgets):
            return warned(told, "see who else uses this account, or poll less often")
        return passed(told)

    return Check(name="budget", ask=ask, needs=(needs,))
