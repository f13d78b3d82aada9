"""What webhooks have named at a daemon that stands by, on its way to the leader of the workflow.

Rule 1: what cannot be passed on within KEPT seconds is lost, and told: the leader's polls find it.
Rule 2: one request a workflow is under way at a time; what comes meanwhile goes together.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import trio
from msgspec import DecodeError, json

from sortie.daemon.webhook_service import Tell
from sortie.facts.webhooks import WebhookLost
from sortie.model.webhooks import joined
from sortie.scheduler.events import DeliveriesSeen
from sortie.store.relay import RelayedAnswer, RelayedRequest, Unanswered
from sortie.telemetry import Publish

if TYPE_CHECKING:
    from sortie.daemon.relayed_leader import RelayedLeader

WAKE = "WAKE"
"""The method of such a request: none of HTTP, so that no client can send it."""

KEPT = 30.0
"""Seconds for which another daemon may take the workflow over before wakes are lost."""

_RETRY_PAUSE = 2.0
_ACCEPTED, _REFUSED = 202, 400
_DECODER = json.Decoder(DeliveriesSeen)


class RelayedWakes:
    """Passes on what it is told, for as long as ``run`` runs."""

    def __init__(self, leader: RelayedLeader, publish: Publish) -> None:
        self._leader = leader
        self._publish = publish
        self._waiting: dict[str, DeliveriesSeen] = {}
        self._told = trio.Event()

    def __call__(self, event: DeliveriesSeen) -> None:
        """Pass on an event, together with those of its kind that wait."""
        known = self._waiting.get(event.kind)
        if known is not None:
            event = DeliveriesSeen(
                kind=event.kind,
                mentions=joined((*known.mentions, *event.mentions)),
                waited=max(known.waited, event.waited),
                overflowed=known.overflowed or event.overflowed,
            )
        self._waiting[event.kind] = event
        self._told.set()

    async def run(self) -> None:
        """Pass on until cancelled."""
        while True:
            await self._told.wait()
            self._told = trio.Event()
            waiting, self._waiting = self._waiting, {}
            for event in waiting.values():
                await self._pass_on(event)

    async def _pass_on(self, event: DeliveriesSeen) -> None:
        began = trio.current_time()
        while True:
            waited = event.waited + trio.current_time() - began
            sent = DeliveriesSeen(event.kind, event.mentions, waited, event.overflowed)
            target = json.encode(sent).decode()
            request = RelayedRequest(id="", workflow="", method=WAKE, target=target, caller="")
            try:
                answer = await self._leader.ask(request)
            except Unanswered as exc:
                error = str(exc)
            else:
                if answer.status == _ACCEPTED:
                    return
                error = f"the leader has answered with {answer.status}"
            if trio.current_time() - began > KEPT:
                self._publish(WebhookLost(kind=event.kind, error=error))
                return
            await trio.sleep(_RETRY_PAUSE)


def told_of_wake(request: RelayedRequest, tell: Tell) -> RelayedAnswer:
    """Tell what a request of another daemon says, and return the answer to it."""
    try:
        tell(_DECODER.decode(request.target))
    except (DecodeError, RecursionError):  # one of a newer version may say something else
        return RelayedAnswer(status=_REFUSED)
    return RelayedAnswer(status=_ACCEPTED)
