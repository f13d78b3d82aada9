"""A daemon under a service manager that waits for its start and its signs of life."""

from __future__ import annotations

import signal

import trio

from tests.daemon.service_socket import ServiceSocket
from tests.e2e.conftest import Start
from tests.e2e.place import PATIENCE, Place


async def told(manager: ServiceSocket, *lines: str) -> None:
    """Wait until the manager was told lines, in this order."""
    with trio.fail_after(PATIENCE):
        while True:
            rest = iter(manager.lines())
            if all(line in rest for line in lines):
                return
            await trio.sleep(0.02)


async def test_a_manager_follows_the_daemon(place: Place, start: Start) -> None:
    """It is told when the daemon serves, how it stands, of a reload and of the end; what it has
    told the daemon reaches no agent."""
    manager = ServiceSocket.below(place.root)
    place.add_issue("LONG", "delay=600")

    async with start(NOTIFY_SOCKET=manager.address, WATCHDOG_USEC="900000") as daemon:
        await told(manager, "STATUS=starting", "READY=1", "WATCHDOG=1", "WATCHDOG=1")
        await daemon.line("http.listening")
        await told(manager, "READY=1", "STATUS=running 1, waiting 0")
        environs = [process.environ() for process in place.processes()]
        daemon.signal(signal.SIGHUP)
        await told(manager, "READY=1", "RELOADING=1", "READY=1")
        await place.sortie("pause")
        await told(manager, "STATUS=running 1, waiting 0, paused")
    await told(manager, "STOPPING=1", "STATUS=stopping, running 1")

    assert manager.lines().count("READY=1") == 2
    assert environs
    assert not any({"NOTIFY_SOCKET", "WATCHDOG_USEC"} & environ.keys() for environ in environs)
    manager.close()
