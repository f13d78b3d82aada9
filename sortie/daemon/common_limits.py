"""Keeps slots, hosts' limits and usage limits that the workflows of several daemons share.

Rule 1: a workflow takes part from its recovery until all of its runs have ended; what is left of it
otherwise counts until its next leader takes part.
Rule 2: each scheduler is told of usage limits before it is told of slots.
"""

from __future__ import annotations

import os
from collections.abc import Mapping

import psycopg
import trio
from msgspec import Struct
from msgspec.structs import replace

from sortie.daemon.common_exchange import Answer, CommonExchange, Order
from sortie.facts import Fact
from sortie.model import LOCAL, StoreError
from sortie.orchestrator import Orchestrator
from sortie.resources import Shortage, run_in_thread
from sortie.resources.lease import Lease, boot_time
from sortie.scheduler import events as ev
from sortie.scheduler.allocator import SlotMember
from sortie.scheduler.common_slots import GrantInForce, SlotReport, renamed, reported
from sortie.scheduler.common_usage import CommonLimit, LimitFollower
from sortie.scheduler.grants import SlotGrant, SlotUse
from sortie.scheduler.usage_limits import UsageLimit
from sortie.telemetry import Publish, facts

LOOK_EVERY = 1.0
"""Seconds between two looks at what stands on record, where nothing calls for one."""

_SETTLING = 0.05  # seconds in which a scheduler takes in what has happened
_LAST_WORD = 1.0  # seconds in which the others are told that this process has ended
_CALLS_FOR_A_LOOK = (
    facts.AgentLimited,
    facts.AgentLimitEnded,
    facts.PollCompleted,
    facts.RunFinished,
    facts.RunStarted,
    facts.WorkflowReloaded,
)


class _Member:
    """One workflow. ``on_record`` is what was last reported of it, ``told`` what its scheduler was
    told; ``frozen`` is set once it is about to be gone."""

    def __init__(self, orchestrator: Orchestrator, lease: Lease, patience: float) -> None:
        self.orchestrator = orchestrator
        self.lease = lease
        self.grant = GrantInForce(lease.token, patience, boot_time())
        self.follower = LimitFollower(lease.token)
        self.reports = 0
        self.on_record: SlotMember | None = None
        self.told: SlotGrant | None = None
        self.frozen: SlotUse | None = None

    def use(self) -> SlotUse:
        return self.frozen or self.orchestrator.slot_use()


class _Asked(Struct, frozen=True, kw_only=True):
    """What an order was made of, by workflow."""

    at: float
    members: Mapping[str, SlotMember]
    limits: Mapping[str, Mapping[str, UsageLimit | None]]
    leaving: Mapping[str, SlotReport]


class CommonLimits:
    """The part of this process. ``exchange`` leads to the others, ``patience`` is the length of a
    lease in seconds, and ``most`` the limit that the process was given, None for none. ``alone``:
    the process was begun for one workflow."""

    def __init__(
        self,
        exchange: CommonExchange,
        patience: float,
        most: int | None,
        publish: Publish,
        *,
        alone: bool = False,
    ) -> None:
        self._alone = alone
        self.error: str | None = None
        self._exchange = exchange
        self._patience = patience
        self._most = most
        self._publish = publish
        self._members: dict[str, _Member] = {}
        self._leaving: dict[str, SlotReport] = {}
        self._known: Mapping[str, CommonLimit] = {}
        self._session = 0
        self._overcommitted = 0
        self._wanted = trio.Event()
        self._limiter = trio.CapacityLimiter(1)

    def join(self, orchestrator: Orchestrator, lease: Lease) -> None:
        """Have a workflow that has recovered take part from now on."""
        self._leaving.pop(lease.workflow, None)
        self._members[lease.workflow] = _Member(orchestrator, lease, self._patience)
        self.look_soon()

    def freeze(self, workflow: str) -> None:
        """Know that a workflow is about to be gone; what it uses is kept until it leaves."""
        if (member := self._members.get(workflow)) is not None:
            member.frozen = replace(member.use(), more=0, more_by_host={})

    def leave(self, workflow: str, *, ended: bool) -> None:
        """Have a workflow take part no more; ``ended``: all of its runs have ended, so that the
        others may have what it had."""
        member = self._members.pop(workflow, None)
        if member is not None and ended:
            token, number = member.lease.token, member.reports + 1
            self._leaving[workflow] = SlotReport(token=token, number=number, member=None)
            self.look_soon()

    def __call__(self, fact: Fact) -> None:
        """Look soon where a fact calls for it; a sink of every workflow."""
        if isinstance(fact, _CALLS_FOR_A_LOOK):
            self.look_soon()

    def look_soon(self) -> None:
        """Have what has changed told to the others."""
        self._wanted.set()

    async def run(self) -> None:
        """Tell and hear again and again, until cancelled."""
        try:
            while True:
                await self._wait()
                self._wanted = trio.Event()
                if self._members or self._leaving:
                    await self._look()
        finally:
            if self._session:
                order, _ = self._order(last=True)
                with trio.CancelScope(deadline=trio.current_time() + _LAST_WORD, shield=True):
                    await run_in_thread(
                        self._exchange.end, order, limiter=self._limiter, abandon_on_cancel=True
                    )

    async def _wait(self) -> None:
        """Wait until there is something to tell or to hear, or for a while."""
        with trio.move_on_after(LOOK_EVERY):
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self._until_told)
                await self._wanted.wait()
                nursery.cancel_scope.cancel()
        if self._wanted.is_set():
            await trio.sleep(_SETTLING)

    async def _until_told(self) -> None:
        """Look soon once the server tells something that concerns this process."""
        connection = self._exchange.connection
        try:
            while not connection.is_lost:
                await trio.lowlevel.wait_readable(connection.live().fileno())
                if self._exchange.is_concerned(tuple(self._members)):
                    break
            else:
                return
        except (psycopg.Error, OSError, ValueError, trio.ClosedResourceError):
            pass  # the connection is lost: the exchange that follows tells why
        self.look_soon()

    async def _look(self) -> None:
        """Exchange with the others, and tell each workflow what follows."""
        order, asked = self._order()
        try:
            answer = await run_in_thread(self._exchange.exchange, order, limiter=self._limiter)
        except (StoreError, Shortage) as exc:
            if self.error is None:
                self._publish(facts.CommonSlotsUnknown(error=str(exc)))
            self.error = str(exc)
            for member in self._members.values():
                self._tell_grant(member, member.told.kept_accounts if member.told else frozenset())
            return
        if self.error is not None:
            self.error = None
            self._publish(facts.CommonSlotsKnown())
        self._note(asked, answer)
        self._hear(asked, answer)

    def _order(self, *, last: bool = False) -> tuple[Order, _Asked]:
        members = {} if last else {name: _member(one) for name, one in self._members.items()}
        limits = {
            name: one.orchestrator.account_limits()
            for name, one in ({} if last else self._members).items()
        }
        reports = dict(self._leaving)
        for name, member in members.items():
            one = self._members[name]
            if member != one.on_record:
                one.reports += 1
                reports[name] = SlotReport(
                    token=one.lease.token,
                    number=one.reports,
                    member=member,
                    most=self._most,
                    alone=self._alone,
                )
        now = trio.current_time()
        order = Order(
            workflows=tuple(members),
            reports=reports,
            steps=[
                (name, one.lease.token, step)
                for name, one in self._members.items()
                if name in limits
                for step in one.follower.steps(
                    limits[name], self._known, now, wants=members[name].use.more > 0
                )
            ],
            accounts=frozenset(account for each in limits.values() for account in each),
        )
        asked = _Asked(at=boot_time(), members=members, limits=limits, leaving=self._leaving.copy())
        return order, asked

    def _note(self, asked: _Asked, answer: Answer) -> None:
        """Know what stands on record now."""
        for name, report in asked.leaving.items():
            if self._leaving.get(name) == report:
                del self._leaving[name]
        is_same = self._session in (0, answer.session)
        for name, one in self._members.items():
            # What a server had on record may be lost with it, so all is reported in a new session.
            one.on_record = asked.members.get(name) if is_same else None
            if name in asked.limits:
                one.follower.done(asked.limits[name])
        if not is_same:
            self.look_soon()
        self._session = answer.session
        self._known = answer.limits
        over = answer.guaranteed
        if over and over != self._overcommitted:
            self._publish(facts.SlotsOvercommitted(guaranteed=over, slots=answer.total))
        self._overcommitted = over

    def _hear(self, asked: _Asked, answer: Answer) -> None:
        """Tell each workflow of usage limits, and of its slots where these have changed."""
        for name, one in self._members.items():
            accounts = one.orchestrator.account_limits()
            known = {
                account: limit for account, limit in answer.limits.items() if account in accounts
            }
            for event in one.follower.hear(accounts, known):
                one.orchestrator.tell(event)
            if answer.own.divider is not None and name in answer.own.told:
                one.grant.hear(answer.own.told[name], asked.at)
            self._tell_grant(one, one.follower.kept(known))

    def _tell_grant(self, one: _Member, kept: frozenset[str]) -> None:
        grant = replace(renamed(one.grant.at(boot_time()), _name_here), kept_accounts=kept)
        if grant != one.told:
            one.told = grant
            one.orchestrator.tell(ev.SlotsGranted(grant))
            self.look_soon()


def _member(one: _Member) -> SlotMember:
    settings = one.orchestrator.settings
    return reported(
        SlotMember(
            weight=settings.share.weight,
            guaranteed=settings.share.guaranteed,
            cap=settings.agent.max_concurrent_agents,
            host_cap=settings.worker.max_concurrent_agents_per_host,
            hosts=tuple(settings.worker.hosts) or (LOCAL,),
            use=one.use(),
        ),
        _name_elsewhere,
    )


def _here() -> str:
    return f"{LOCAL} {os.uname().nodename}"


def _name_elsewhere(host: str) -> str:
    """Return what a host is called among all daemons, as each has a machine of its own."""
    return _here() if host == LOCAL else host


def _name_here(host: str) -> str:
    return LOCAL if host == _here() else host
