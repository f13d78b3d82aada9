"""The leader of a workflow, which another daemon is: how it is asked, and how it answers."""

from __future__ import annotations

from collections.abc import Set
from typing import TYPE_CHECKING

import trio
from msgspec.structs import replace

from sortie.daemon.relayed_wakes import WAKE, told_of_wake
from sortie.daemon.webhook_service import Tell
from sortie.resources.lease import Lease, LeaseLost
from sortie.store.relay import RelayedAnswer, RelayedRequest, Unanswered
from sortie.telemetry import Publish

if TYPE_CHECKING:
    from starlette.types import ASGIApp

    from sortie.daemon.candidacy import Candidacy
    from sortie.daemon.drain import ProcessDrain
    from sortie.daemon.relay import Relay
    from sortie.web.health import Health

_MOST_WAITING = 100  # requests: all connections of a daemon
_ANSWER_SECONDS = 30.0


class RelayedLeader:
    """See LeaderSource: the leader of the workflow that this process stands by for, as its
    ``candidacy`` has it."""

    def __init__(
        self, candidacy: Candidacy, relay: Relay, drain: ProcessDrain, known: Set[str]
    ) -> None:
        self.candidacy = candidacy
        self._relay = relay
        self._drain = drain
        self._known = known

    async def ask(self, request: RelayedRequest) -> RelayedAnswer:
        """See LeaderSource."""
        workflow = self.candidacy.workflow
        try:
            return await self._relay.ask(replace(request, workflow=workflow))
        except Unanswered as exc:
            raise Unanswered(f"workflow {workflow} is not led by this daemon: {exc}") from exc

    def health(self) -> Health:
        """See LeaderSource. A standby that cannot reach the database can take nothing over."""
        from sortie.web.health import Health

        candidacy = self.candidacy
        if candidacy.error is not None:
            return Health(ready=False, reasons=(candidacy.error,))
        leader = candidacy.leader or "no daemon"
        details = [f"{leader} leads the workflow"]
        if self._drain.draining:
            details.append("this daemon is drained, and leads nothing")
        return Health(ready=True, standby=True, details=tuple(details))

    def secrets(self) -> Set[str]:
        """See LeaderSource."""
        return self._known


async def answer_relayed(
    relay: Relay, lease: Lease, app: ASGIApp, base: str, publish: Publish, tell: Tell
) -> None:
    """Answer, until cancelled, what other daemons are asked of a workflow that is led here. ``app``
    serves it below the path ``base``, and ``tell`` is told what their webhooks have named."""
    from sortie.web.relayed_requests import refused, relayed_answer

    waiting, requests = trio.open_memory_channel[RelayedRequest](_MOST_WAITING)

    def take(request: RelayedRequest) -> None:
        try:
            waiting.send_nowait(request)
        except (trio.WouldBlock, trio.BrokenResourceError, trio.ClosedResourceError):
            relay.answer(request, refused("the leader has more requests than it can answer now"))

    async def answer(request: RelayedRequest) -> None:
        try:
            lease.require()
        except LeaseLost as exc:
            relay.answer(request, refused(f"{exc}; nothing was done"))
            return
        if request.method == WAKE:
            relay.answer(request, told_of_wake(request, tell))
            return
        with trio.move_on_after(_ANSWER_SECONDS):
            relay.answer(request, await relayed_answer(app, request, base, publish))

    relay.serve(lease, take)
    try:
        async with trio.open_nursery() as nursery, requests:
            async for request in requests:
                nursery.start_soon(answer, request)
    finally:
        relay.serve_no_more(lease)
