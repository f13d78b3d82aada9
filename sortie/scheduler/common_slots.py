"""Divides slots among the schedulers of several processes, which hear of each other late; pure.

A leader reports what its workflow has and wants. One process divides the slots, and what it tells
stands on record, so that another one can go on dividing.

Rule 1: a report counts if it is newer than the last one of its workflow: of a later leader, which
has a greater token, or of the same leader with a greater number.
Rule 2: what a leader has, or was told that it may have, counts as used until a later leader of the
workflow reports, or it reports itself that all of its runs have ended.
Rule 3: a grant is for one leader. The next one has none of it, until it has reported.
Rule 4: a leader that has not heard for too long what it may have starts nothing more. What runs
goes on, and its grant stays in force for those who divide.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Set

from msgspec import Struct
from msgspec.structs import replace

from sortie.scheduler.allocator import Allocator, SlotMember
from sortie.scheduler.grants import SlotGrant, SlotUse


class SlotReport(Struct, frozen=True, kw_only=True):
    """What a leader says of its workflow. ``member`` is None once all of its runs have ended, and
    ``most`` the limit for all workflows that its process was given, None for none. ``alone``: the
    process was begun for this workflow alone, which shares its limit with no other by that."""

    token: int
    number: int
    member: SlotMember | None
    most: int | None = None
    alone: bool = False

    def is_newer_than(self, other: SlotReport | None) -> bool:
        """Tell whether it counts where the other is known."""
        return other is None or (self.token, self.number) > (other.token, other.number)


class ToldGrants(Struct, frozen=True, kw_only=True):
    """What a leader was told: the grants by which it may act still, in their order."""

    token: int
    grants: tuple[SlotGrant, ...]


class CommonAllocator:
    """Divides from what is ``on_record`` of another process that divided before. ``total`` is the
    common limit, and ``guaranteed`` what all workflows together are guaranteed of it."""

    def __init__(self, on_record: Mapping[str, ToldGrants]) -> None:
        self.total = 0
        self.guaranteed = 0
        self._reports: dict[str, SlotReport] = {}
        self._tokens = {name: told.token for name, told in on_record.items()}
        grants = {name: told.grants for name, told in on_record.items()}
        numbers = (grant.number for told in grants.values() for grant in told)
        self._allocator = Allocator(grants, max(numbers, default=0))

    def allocate(
        self, reports: Mapping[str, SlotReport], led: Set[str], now: float
    ) -> dict[str, ToldGrants]:
        """Return what is to be put on record, by workflow; those that it names have other grants.

        ``led`` are the workflows whose reports are of a leader that leads still; ``now`` is in
        monotonic seconds.
        """
        for name, report in reports.items():
            if report.is_newer_than(self._reports.get(name)):
                self._reports[name] = report
                self._begin(name, report)
        members = {
            name: report.member if name in led else _without_leader(report.member)
            for name, report in self._reports.items()
            if report.member is not None
        }
        self.total = self._total(led)
        self.guaranteed = sum(member.guaranteed for member in members.values())
        grants = self._allocator.allocate(self.total, members, now)
        return {
            name: ToldGrants(token=self._tokens[name], grants=self._allocator.told(name))
            for name in grants
        }

    def _begin(self, name: str, report: SlotReport) -> None:
        """Forget what was told to an earlier leader, or to one whose runs have ended."""
        if report.member is None or report.token > self._tokens.get(name, 0):
            self._allocator.forget(name)
        self._tokens[name] = max(report.token, self._tokens.get(name, 0))

    def _total(self, led: Set[str]) -> int:
        """Return the common limit: the smallest that a process was given, or else the largest of
        the workflows' own; all of these together where each has a process of its own."""
        known = {name: r for name, r in self._reports.items() if r.member is not None}
        of_led = [report for name, report in known.items() if name in led] or list(known.values())
        given = [report.most for report in of_led if report.most is not None]
        if given:
            return min(given)
        if all(report.alone for report in of_led):
            return sum(r.member.cap for r in known.values() if r.member is not None)
        return max(r.member.cap for r in of_led if r.member is not None)


def _without_leader(member: SlotMember) -> SlotMember:
    """Return a workflow without a leader: it keeps what it has, and wants nothing."""
    return replace(member, guaranteed=0, use=replace(member.use, more=0, more_by_host={}))


class GrantInForce:
    """The grant by which a leader acts from ``now`` on; it is stale once none was heard for
    ``patience`` seconds."""

    def __init__(self, token: int, patience: float, now: float) -> None:
        self._token = token
        self._patience = patience
        self._heard_at = now
        self._grant = SlotGrant(common=True)

    def hear(self, told: ToldGrants, asked_at: float) -> None:
        """Take in what stands on record while a process divides; it was asked for at that time."""
        if told.token != self._token or not told.grants:
            return
        self._heard_at = max(self._heard_at, asked_at)
        if told.grants[-1].number > self._grant.number:
            self._grant = replace(told.grants[-1], common=True)

    def at(self, now: float) -> SlotGrant:
        """Return the grant as it is obeyed at a time; as nothing before the first was heard."""
        is_stale = now - self._heard_at >= self._patience
        return replace(self._grant, stale=is_stale)


def reported(member: SlotMember, naming: Callable[[str], str]) -> SlotMember:
    """Return a member as others know it, with the names that they have for its hosts."""
    use = member.use
    return replace(
        member,
        hosts=tuple(map(naming, member.hosts)),
        use=SlotUse(
            used=use.used,
            by_host=_renamed(use.by_host, naming),
            more=use.more,
            more_by_host=_renamed(use.more_by_host, naming),
            grant=renamed(
                replace(use.grant, common=False, stale=False, kept_accounts=frozenset()), naming
            ),
        ),
    )


def renamed(grant: SlotGrant, naming: Callable[[str], str]) -> SlotGrant:
    """Return a grant with other names of hosts."""
    return replace(grant, hosts=_renamed(grant.hosts, naming))


def _renamed(by_host: Mapping[str, int], naming: Callable[[str], str]) -> dict[str, int]:
    return {naming(host): count for host, count in by_host.items()}
