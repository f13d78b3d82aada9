"""Keeps the slots, and the usage limits of accounts, that the workflows of a process share.

Rule 1: a workflow that is gone gives its slots back only when its runs have ended.
Rule 2: the slots of workflows with a database that several daemons use are divided among all of
these, and not here.
Rule 3: a usage limit that one workflow meets or leaves behind is told to the others with the same
account, before any slot is granted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

import trio
from msgspec.structs import replace

from sortie.config.settings import Settings
from sortie.facts import Fact
from sortie.model import LOCAL, RunId
from sortie.orchestrator import Orchestrator
from sortie.scheduler import events as ev
from sortie.scheduler.allocator import Allocator, SlotMember
from sortie.scheduler.grants import SlotUse
from sortie.scheduler.usage_limits import UsageLimit
from sortie.telemetry import Publish, facts

LOOK_EVERY = 1.0
"""Seconds between two looks, where nothing happens that calls for one."""

_SETTLING = 0.05  # seconds in which a scheduler takes in what has happened
_CALLS_FOR_A_LOOK = (
    facts.AgentLimited,
    facts.AgentLimitEnded,
    facts.PollCompleted,
    facts.RunFinished,
    facts.RunStarted,
    facts.WorkflowReloaded,
)


class SharedSlots:
    """The common limit is ``most``, or the largest of the limits that ``settings`` returns."""

    def __init__(
        self,
        most: int | None,
        settings: Callable[[], Iterable[Settings]],
        publish: Publish,
    ) -> None:
        self._publish = publish
        self._overcommitted = 0
        self._most = most
        self._settings = settings
        self._members: dict[str, Orchestrator] = {}
        self._divided: set[str] = set()
        self._frozen: dict[str, SlotUse] = {}
        self._allocator = Allocator()
        self._limits: dict[str, Mapping[str, UsageLimit | None]] = {}
        self._wanted = trio.Event()

    @property
    def total(self) -> int:
        """The common limit."""
        if self._most is not None:
            return self._most
        return max((each.agent.max_concurrent_agents for each in self._settings()), default=0)

    @property
    def used(self) -> int:
        """How many slots all workflows use."""
        return sum(self._use(name).used for name in self._members)

    def join(self, name: str, orchestrator: Orchestrator, *, divided: bool = True) -> None:
        """Give slots to a workflow from now on; not ``divided``: the slots of its database are
        divided among the daemons there, and only usage limits are told to it."""
        self._members[name] = orchestrator
        if divided:
            self._divided.add(name)
        self.look_soon()

    def freeze(self, name: str) -> None:
        """Know that a workflow is about to be gone; what it uses is kept until it leaves."""
        if name in self._members:
            self._frozen[name] = replace(self._use(name), more=0, more_by_host={})

    def leave(self, name: str) -> None:
        """Take back the slots of a workflow whose runs have ended."""
        self._members.pop(name, None)
        self._divided.discard(name)
        self._frozen.pop(name, None)
        self._limits.pop(name, None)
        self._allocator.forget(name)
        self.look_soon()

    def __call__(self, fact: Fact) -> None:
        """Look soon where a fact calls for it; a sink of every workflow."""
        if isinstance(fact, _CALLS_FOR_A_LOOK):
            self.look_soon()

    def look_soon(self) -> None:
        """Have the slots divided anew."""
        self._wanted.set()

    async def run(self) -> None:
        """Divide the slots again and again, until cancelled."""
        while True:
            with trio.move_on_after(LOOK_EVERY):
                await self._wanted.wait()
                await trio.sleep(_SETTLING)
            self._wanted = trio.Event()
            self.look()

    def look(self) -> None:
        """Tell each workflow of usage limits, and of its slots where these have changed."""
        self._spread_limits()
        self._warn()
        members = {name: self._member(name) for name in self._members if name in self._divided}
        grants = self._allocator.allocate(self.total, members, trio.current_time())
        for name, grant in grants.items():
            self._members[name].tell(ev.SlotsGranted(grant))

    def _warn(self) -> None:
        """Tell where more is guaranteed than there is."""
        guaranteed = sum(self._members[name].settings.share.guaranteed for name in self._divided)
        over = guaranteed if guaranteed > self.total else 0
        if over and over != self._overcommitted:
            self._publish(facts.SlotsOvercommitted(guaranteed=guaranteed, slots=self.total))
        self._overcommitted = over

    def _use(self, name: str) -> SlotUse:
        return self._frozen.get(name) or self._members[name].slot_use()

    def _member(self, name: str) -> SlotMember:
        settings = self._members[name].settings
        return SlotMember(
            weight=settings.share.weight,
            guaranteed=settings.share.guaranteed,
            cap=settings.agent.max_concurrent_agents,
            host_cap=settings.worker.max_concurrent_agents_per_host,
            hosts=tuple(settings.worker.hosts) or (LOCAL,),
            use=self._use(name),
        )

    def _spread_limits(self) -> None:
        now = {name: one.account_limits() for name, one in self._members.items()}
        for name, limits in now.items():
            known = self._limits.get(name)
            for account, limit in limits.items():
                others = [n for n, theirs in now.items() if n != name and account in theirs]
                before = None if known is None else known.get(account)
                if limit is not None and limit.backing_off and _is_news(limit, before):
                    self._tell_of(limit, others)
                elif limit is None and before is not None:
                    for other in others:
                        self._members[other].tell(ev.UsageLimitPassed(account))
                if known is None or account not in known:
                    self._tell_newcomer(name, [now[other].get(account) for other in others])
        self._limits = dict(now)

    def _tell_of(self, limit: UsageLimit, others: Iterable[str]) -> None:
        met = ev.UsageLimitMet(
            run_id=RunId(""),
            account=limit.account,
            message=limit.message,
            resets_at=limit.resets_at,
            seconds=limit.until - trio.current_time(),
        )
        for other in others:
            self._members[other].tell(met)

    def _tell_newcomer(self, name: str, limits: Iterable[UsageLimit | None]) -> None:
        """Tell a workflow that has just begun with an account of the limit that others know."""
        for limit in limits:
            if limit is not None and limit.backing_off:
                self._tell_of(limit, (name,))


def _is_news(limit: UsageLimit, before: UsageLimit | None) -> bool:
    """Tell whether a limit was met, or more became known of its end, since the last look."""
    if before is None or not before.backing_off:
        return True
    return (limit.until, limit.resets_at) != (before.until, before.resets_at)
