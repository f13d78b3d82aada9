"""The daemon's streams of live events, as one thing to run and to stir."""

from __future__ import annotations

import traceback
from dataclasses import dataclass

import trio

from sortie.telemetry import Publish
from sortie.telemetry.facts import AdapterCrashed, Fact, HttpAnswered
from sortie.web.broadcaster import Broadcaster
from sortie.web.event_stream import StreamRoom

_PAUSE = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Live:
    """What streams have in common; ``events`` is that of ``/api/v1/events``, ``pages`` are those
    of pages."""

    events: Broadcaster
    room: StreamRoom
    pages: tuple[Broadcaster, ...] = ()

    @property
    def broadcasters(self) -> tuple[Broadcaster, ...]:
        """All of them."""
        return (self.events, *self.pages)

    def stir(self, fact: Fact) -> None:
        """Take a fact for a sign that something may have changed; a sink."""
        if not self.room.taken or isinstance(fact, HttpAnswered):
            return  # who begins to listen is shown everything
        self.events.stir()
        for page in self.pages:
            page.stir()

    async def run(self, publish: Publish) -> None:
        """Have all streams told what changes, until cancelled."""
        async with trio.open_nursery() as nursery:
            for broadcaster in self.broadcasters:
                nursery.start_soon(_keep_running, broadcaster, publish)


async def _keep_running(broadcaster: Broadcaster, publish: Publish) -> None:
    """Run a broadcaster; where its feed fails, its listeners are dropped and nobody else."""
    while True:
        try:
            await broadcaster.run()
        except Exception:
            publish(AdapterCrashed(where="live events", traceback=traceback.format_exc()))
            broadcaster.drop_all()
        await trio.sleep(_PAUSE)
