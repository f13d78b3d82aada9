"""A server over a living orchestrator, in a thread of its own, for clients that block."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from queue import Queue
from threading import Thread

import trio

from sortie.telemetry import facts
from sortie.web.access import Access
from sortie.web.app import Served, create_app
from sortie.web.broadcaster import Broadcaster
from sortie.web.event_stream import LiveEvents, StreamRoom
from sortie.web.listener import ListenAddress, listen
from sortie.web.server import serve
from sortie.web.sessions import BrowserSessions
from sortie.web.state_feed import StateFeed
from tests.agents.fake import Completes, Fails, Silent
from tests.orchestrator.daemon_view import view_of
from tests.orchestrator.world import World
from tests.web.conftest import World as FixedWorld
from tests.web.drains import FakeDrains
from tests.worker.rig import issue

TOKEN = "right"


@contextmanager
def live_server() -> Iterator[str]:
    """Serve for the length of the block, and give the address.

    Issue DEMO-1 runs, DEMO-2 waits, DEMO-3 is held, and all have runs on record.
    """
    told: Queue[tuple[str, trio.lowlevel.TrioToken, trio.CancelScope]] = Queue()
    thread = Thread(target=lambda: trio.run(_serve, told), daemon=True)
    thread.start()
    url, token, scope = told.get(timeout=30)
    try:
        yield url
    finally:
        token.run_sync_soon(scope.cancel)
        thread.join(timeout=30)
    assert not thread.is_alive()


async def _serve(told: Queue[tuple[str, trio.lowlevel.TrioToken, trio.CancelScope]]) -> None:
    world = World(issue("demo-1"), issue("demo-2"), issue("demo-3"))
    world.agent.scripts["DEMO-1"] = [Silent()]
    world.agent.scripts["DEMO-2"] = [Fails()] * 100
    world.agent.scripts["DEMO-3"] = [Completes(status="blocked")]
    async with world.life_cut_short() as orchestrator, trio.open_nursery() as nursery:
        await world.until(facts.RetryScheduled)
        view = view_of(orchestrator, world)
        live = LiveEvents(events=Broadcaster(StateFeed(view.state), "life"), room=StreamRoom(100))
        served = Served(daemon=view, metrics=FixedWorld().metrics, live=live, drains=FakeDrains())
        access = Access(
            host="127.0.0.1",
            loopback=True,
            token=TOKEN,
            sessions=BrowserSessions(trio.current_time),
        )
        app = create_app(served, access, world.publish)
        listener = await listen(ListenAddress(host="127.0.0.1", port=0))
        await nursery.start(serve, app, listener, world.publish)
        told.put((listener.url, trio.lowlevel.current_trio_token(), nursery.cancel_scope))
