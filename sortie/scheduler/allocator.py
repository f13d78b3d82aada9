"""Divides the slots of a process among the schedulers in it; pure.

Rule 1: guaranteed slots are kept for their scheduler, wanted or not, and never lent.
Rule 2: the rest is divided by weight among those that want it, and what one does not want goes to
the others (max-min fairness). What is lent comes back as runs end.
Rule 3: a slot that cannot be divided goes to the scheduler that is owed most, so that none starves.
Rule 4: a limit is lowered at once, and raised only by slots that no scheduler uses, holds or was
told of.
Rule 5: where there are slots for all that the schedulers may have, each has them, wanted or not.
So the sum of all runs never exceeds the common limit, also while limits move.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from fractions import Fraction

from msgspec import Struct, field
from msgspec.structs import replace

from sortie.scheduler.grants import SlotGrant, SlotUse

KEPT_FOR = 30.0
"""Slot-seconds by which another has to be owed more before an undividable slot changes hands."""


class SlotClaim(Struct, frozen=True, kw_only=True):
    """What one scheduler has and wants of a pool of slots: ``used`` runs, and ``more`` that could
    start now. ``cap`` is its own limit. ``kept``: it has an undividable slot now. ``owed`` are the
    slot-seconds that it had less than its fair share. ``waits``: it would use more, but for what
    other pools leave it."""

    weight: int = 1
    guaranteed: int = 0
    cap: int
    used: int
    more: int
    owed: float = 0.0
    kept: bool = False
    waits: bool = False

    @property
    def want(self) -> int:
        """How many slots it would use."""
        return min(self.cap, self.used + self.more)


class SlotMember(Struct, frozen=True, kw_only=True):
    """One scheduler as it stands. ``cap`` and ``host_cap`` are its own limits, in all and on each
    host, ``hosts`` those that it may use."""

    weight: int = 1
    guaranteed: int = 0
    cap: int
    host_cap: int | None = None
    hosts: tuple[str, ...]
    use: SlotUse


def guaranteed_slots(total: int, claims: Mapping[str, SlotClaim]) -> dict[str, int]:
    """Return the slots that are kept for each; those first in order come first where there are too
    few for all."""
    kept = {}
    for name, claim in claims.items():
        kept[name] = min(claim.guaranteed, claim.cap, total)
        total -= kept[name]
    return kept


def fair_shares(total: int, claims: Mapping[str, SlotClaim]) -> dict[str, Fraction]:
    """Return the exact share of each beside its guaranteed slots, by weight, and no more than it
    wants."""
    kept = guaranteed_slots(total, claims)
    left = Fraction(total - sum(kept.values()))
    wanting = {n: claim.want - kept[n] for n, claim in claims.items() if claim.want > kept[n]}
    shares = dict.fromkeys(claims, Fraction(0))
    while wanting:
        level = left / sum(claims[name].weight for name in wanting)
        content = {n: want for n, want in wanting.items() if want <= level * claims[n].weight}
        for name, want in list((content or wanting).items()):
            shares[name] = Fraction(want) if content else level * claims[name].weight
            left -= shares[name]
            del wanting[name]
    return shares


def limits(total: int, claims: Mapping[str, SlotClaim]) -> dict[str, int]:
    """Return the limit of each, in whole slots; their sum is ``total`` at most."""
    kept, shares = guaranteed_slots(total, claims), fair_shares(total, claims)
    whole = {name: kept[name] + math.floor(share) for name, share in shares.items()}
    divided = [name for name, share in shares.items() if share.denominator > 1]
    undividable = total - sum(kept.values()) - sum(map(math.floor, shares.values()))
    for name in sorted(divided, key=lambda n: -_urgency(claims[n]))[:undividable]:
        whole[name] += 1
    return whole


def _urgency(claim: SlotClaim) -> float:
    return claim.owed + KEPT_FOR * claim.kept


class _Pool(Struct):
    """What is remembered of slots that are divided: what each is owed, how fast that grows, and
    which have more of them than their whole share."""

    owed: dict[str, float] = field(default_factory=dict)
    growth: dict[str, float] = field(default_factory=dict)
    kept: set[str] = field(default_factory=set)

    def divide(self, total: int, claims: Mapping[str, SlotClaim], seconds: float) -> dict[str, int]:
        """Return the limit of each, after so many seconds in which they had what they use."""
        kept, shares = guaranteed_slots(total, claims), fair_shares(total, claims)
        wanting = [name for name, claim in claims.items() if claim.want > kept[name]]
        # A scheduler that only waits for a host is owed no more meanwhile, and no less.
        self.owed = {
            name: self.owed.get(name, 0.0) + self.growth.get(name, 0.0) * seconds
            for name, claim in claims.items()
            if name in wanting or claim.waits
        }
        had = {name: max(0, claims[name].used - kept[name]) for name in wanting}
        # Only what is used can be owed: of a pool that lies idle for other reasons no part is owed,
        # or those that use it would be owed ever more as well.
        fair = float(sum(shares[name] for name in wanting))
        scale = sum(had.values()) / fair if fair else 0.0
        self.growth = {name: float(shares[name]) * scale - had[name] for name in wanting}
        known = {
            name: replace(claim, owed=self.owed.get(name, 0.0), kept=name in self.kept)
            for name, claim in claims.items()
        }
        divided = limits(total, known)
        self.kept = {n for n, slots in divided.items() if slots > kept[n] + math.floor(shares[n])}
        return divided


class Allocator:
    """Remembers what each scheduler was told, and tells what each is to be told next. ``told`` is
    what another allocator has told and they may not have heard, ``number`` the last it gave."""

    def __init__(
        self, told: Mapping[str, Sequence[SlotGrant]] | None = None, number: int = 0
    ) -> None:
        self._told = {name: list(grants) for name, grants in (told or {}).items()}
        self._number = number
        self._slots = _Pool()
        self._hosts: dict[str, _Pool] = {}
        self._at: float | None = None

    def forget(self, name: str) -> None:
        """Forget a scheduler that is gone with all its runs; a next one of the name has nothing."""
        self._told.pop(name, None)

    def told(self, name: str) -> tuple[SlotGrant, ...]:
        """Return the grants by which a scheduler may act, the last of them at the end."""
        return tuple(self._told.get(name, ()))

    def allocate(
        self, total: int, members: Mapping[str, SlotMember], now: float
    ) -> dict[str, SlotGrant]:
        """Return the grants that differ from what their schedulers were told; they are to be told
        at once. ``total`` is the common limit, ``now`` in monotonic seconds."""
        seconds, self._at = 0.0 if self._at is None else now - self._at, now
        for name, member in members.items():
            self._told[name] = [
                *(g for g in self._told.get(name, ()) if g.number > member.use.grant.number)
            ] or [member.use.grant]
        by_host = {
            host: self._host_limits(host, total, members, seconds)
            for host in dict.fromkeys(host for member in members.values() for host in member.hosts)
        }
        self._hosts = {host: pool for host, pool in self._hosts.items() if host in by_host}
        claims = {
            name: SlotClaim(
                weight=member.weight,
                guaranteed=member.guaranteed,
                cap=member.cap,
                used=member.use.used,
                more=min(member.use.more, max(0, _room(name, member, by_host) - member.use.used)),
                waits=member.use.more > 0,
            )
            for name, member in members.items()
        }
        wanted = self._slots.divide(total, claims, seconds)
        wanted = _all_that_they_may_have(total, members) or wanted
        slots = self._moved(total, wanted, members, lambda grant: grant.slots, lambda use: use.used)
        return {
            name: grant
            for name, member in members.items()
            if (
                grant := self._news(
                    name, total, slots[name], {h: by_host[h][name] for h in member.hosts}
                )
            )
            is not None
        }

    def _news(
        self, name: str, total: int, slots: int, hosts: Mapping[str, int]
    ) -> SlotGrant | None:
        """Note a grant; return it where it is another one than the last."""
        last = self._told[name][-1]
        grant = SlotGrant(number=last.number, slots=slots, total=total, hosts=hosts)
        if grant == last:
            return None
        self._number += 1
        grant = replace(grant, number=self._number)
        self._told[name].append(grant)
        return grant

    def _host_limits(
        self, host: str, total: int, members: Mapping[str, SlotMember], seconds: float
    ) -> dict[str, int]:
        """Return what each may have of a host now; its limit is the smallest that is named."""
        there = {name: member for name, member in members.items() if host in member.hosts}
        named = [m.host_cap for m in there.values() if m.host_cap is not None]
        if not named:
            return dict.fromkeys(there, total)
        # Runs may go on where their scheduler names the host no more.
        strangers = sum(m.use.by_host.get(host, 0) for n, m in members.items() if n not in there)
        limit = max(0, min(named) - strangers)
        claims = {
            name: SlotClaim(
                weight=member.weight,
                cap=min(limit, member.cap),
                used=member.use.by_host.get(host, 0),
                more=member.use.more_by_host.get(host, 0),
            )
            for name, member in there.items()
        }
        wanted = self._hosts.setdefault(host, _Pool()).divide(limit, claims, seconds)
        wanted = _all_that_they_may_have(limit, there) or wanted
        return self._moved(
            limit,
            wanted,
            there,
            lambda grant: grant.on(host),
            lambda use: use.by_host.get(host, 0),
        )

    def _moved(
        self,
        total: int,
        wanted: Mapping[str, int],
        members: Mapping[str, SlotMember],
        part: Callable[[SlotGrant], int],
        used: Callable[[SlotUse], int],
    ) -> dict[str, int]:
        """Lower what is to be lowered, and raise the rest by what is free for certain."""
        told = {name: part(self._told[name][-1]) for name in members}
        reserved = {
            name: max(part(member.use.grant), used(member.use), *map(part, self._told[name]))
            for name, member in members.items()
        }
        free = total - sum(reserved.values())
        limit = {name: min(told[name], wanted[name]) for name in members}
        for name in _in_turn(members, limit, wanted):
            # Its own runs hold a part of what it gets already.
            held = reserved[name] - limit[name]
            raised = min(wanted[name] - limit[name], held + max(0, free))
            limit[name] += raised
            free -= max(0, raised - held)
        return limit


def _all_that_they_may_have(total: int, members: Mapping[str, SlotMember]) -> dict[str, int] | None:
    """Return the own limit of each, None where the total is too small for all of these."""
    most = {name: min(total, member.cap) for name, member in members.items()}
    return most if sum(most.values()) <= total else None


def _room(name: str, member: SlotMember, by_host: Mapping[str, Mapping[str, int]]) -> int:
    """Return how many runs the hosts of a scheduler have room for."""
    return sum(by_host[host][name] for host in member.hosts)


def _in_turn(
    members: Iterable[str], limit: Mapping[str, int], wanted: Mapping[str, int]
) -> list[str]:
    """Return who is to be raised, those that have the least of what they should have first."""
    raised = [name for name in members if wanted[name] > limit[name]]
    return sorted(raised, key=lambda name: limit[name] / wanted[name])
