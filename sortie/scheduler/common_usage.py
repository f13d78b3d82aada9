"""Spreads the usage limits of accounts among workflows that know each other by records; pure.

Rule 1: what a run of one workflow has met is put on record, and holds the others.
Rule 2: while it may be over, one workflow has the claim to try that; the others wait. A claim that
is not used is over after a while, and left to the others for as long.
Rule 3: when a run has shown that it is over, the others hear of it, and each tries by itself.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime

from msgspec import Struct

from sortie.model import RunId
from sortie.scheduler import events as ev
from sortie.scheduler.usage_limits import UsageLimit

CLAIM_SECONDS = 30.0
"""How long a claim to try an account lasts, unless it is renewed."""

_RENEWED_AT = CLAIM_SECONDS * 2 / 3
_SHORTEST_PAUSE = 1.0  # seconds that a workflow is held which hears of a limit at its end


class CommonLimit(Struct, frozen=True, kw_only=True):
    """The usage limit of an account on record; ``generation`` grows when it is met anew, or over.

    ``left`` are the seconds until it may be over. ``met_by`` is the token of the leader whose
    workflow has met it last, ``claimed_by`` that of the one whose workflow tries it now.
    """

    account: str
    generation: int
    message: str
    left: float
    resets_at: datetime | None = None
    over: bool = False
    met_by: int | None = None
    claimed_by: int | None = None
    claim_left: float = 0.0

    def is_claimed_by(self, token: int) -> bool:
        """Tell whether a leader has the claim to try it."""
        return self.claimed_by == token and self.claim_left > 0


class PutMet(Struct, frozen=True):
    """Put on record that a limit was met; ``first_hand``: by a run of this workflow, and not as
    its own records say."""

    limit: UsageLimit
    seconds: float
    first_hand: bool


class PutOver(Struct, frozen=True):
    """Put on record that a limit is over, unless it was met anew after this generation."""

    account: str
    generation: int


class ClaimTrial(Struct, frozen=True):
    """Claim to try whether a limit is over, or renew the claim."""

    account: str
    generation: int


Step = PutMet | PutOver | ClaimTrial


class LimitFollower:
    """How one workflow, led with a token, follows what is on record of its accounts."""

    def __init__(self, token: int) -> None:
        self._token = token
        self._before: Mapping[str, UsageLimit | None] = {}
        self._heard: dict[str, int] = {}
        self._claimed_at: dict[str, float] = {}

    def steps(
        self,
        mine: Mapping[str, UsageLimit | None],
        known: Mapping[str, CommonLimit],
        now: float,
        *,
        wants: bool,
    ) -> list[Step]:
        """Return what is to be put on record.

        ``mine`` are the accounts of the workflow with the limits that hold it, ``known`` what is on
        record; ``wants``: a run would start if no other workflow were in its way.
        """
        found: list[Step] = []
        for account, limit in mine.items():
            common = known.get(account)
            if limit is None:
                met_before = self._before.get(account) is not None
                if met_before and common is not None and not common.over:
                    found.append(PutOver(account, self._heard.get(account, common.generation)))
            elif limit.backing_off and self._is_news(limit, common):
                found.append(PutMet(limit, max(0.0, limit.until - now), limit.met_here))
            elif common is not None and self._may_claim(limit, common, now, wants=wants):
                found.append(ClaimTrial(account, common.generation))
        return found

    def done(self, mine: Mapping[str, UsageLimit | None]) -> None:
        """Note that the steps for these limits are on record."""
        self._before = dict(mine)

    def hear(
        self, mine: Mapping[str, UsageLimit | None], known: Mapping[str, CommonLimit]
    ) -> Iterator[ev.UsageLimitMet | ev.UsageLimitPassed]:
        """Yield what the workflow is to be told of what others have put on record."""
        for account, common in known.items():
            if account not in mine or self._heard.get(account) == common.generation:
                continue
            self._heard[account] = common.generation
            limit = mine[account]
            if not common.over and common.met_by != self._token:
                yield ev.UsageLimitMet(
                    run_id=RunId(""),
                    account=account,
                    message=common.message,
                    resets_at=common.resets_at,
                    seconds=max(common.left, _SHORTEST_PAUSE),
                )
            elif common.over and limit is not None and limit.backing_off:
                yield ev.UsageLimitPassed(account)

    def kept(self, known: Mapping[str, CommonLimit]) -> frozenset[str]:
        """Return the accounts that this workflow may not try, as it has no claim to."""
        return frozenset(
            account
            for account, common in known.items()
            if not common.over and not common.is_claimed_by(self._token)
        )

    def _is_news(self, limit: UsageLimit, common: CommonLimit | None) -> bool:
        if not limit.met_here:
            return common is None  # this workflow's own records know of it, and no others do
        before = self._before.get(limit.account)
        if before is None or not before.backing_off or not before.met_here:
            return True
        return (limit.until, limit.resets_at) != (before.until, before.resets_at)

    def _may_claim(
        self, limit: UsageLimit, common: CommonLimit, now: float, *, wants: bool
    ) -> bool:
        if limit.backing_off or common.over or common.left > 0:
            return False
        account, tries = limit.account, limit.probe is not None
        if common.is_claimed_by(self._token):
            return tries and common.claim_left < _RENEWED_AT
        if common.claim_left > 0 or not (tries or wants):
            return False
        last = self._claimed_at.get(account)
        if last is not None and not tries and now - last < 2 * CLAIM_SECONDS:
            return False  # its claim was of no use, so that others are first
        self._claimed_at[account] = now
        return True
