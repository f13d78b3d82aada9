"""The process of a single workflow while another daemon leads it: its signals, and its manager."""

from __future__ import annotations

import signal
from collections.abc import Mapping
from typing import TYPE_CHECKING

import trio

from sortie.daemon.leadership import known_to_stand_by, stand_by
from sortie.daemon.service_manager import ServiceManager, ServiceStanding
from sortie.facts import DaemonStopped
from sortie.telemetry import Publish

if TYPE_CHECKING:
    from sortie.daemon.candidacy import Candidacy


async def stood_by(candidacy: Candidacy, environ: Mapping[str, str], publish: Publish) -> bool:
    """Wait until this process leads the workflow; return False where it is asked to end before.

    Raises StoreError where the server could not be used from the first.
    """
    manager = ServiceManager.of(environ, publish)

    def standing() -> ServiceStanding:
        leader = candidacy.leader or "no daemon"
        status = f"standing by: {candidacy.error or f'{leader} leads the workflow'}"
        return ServiceStanding(live=True, status=status)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(manager.pulse, standing)
        nursery.start_soon(_end_when_asked, nursery.cancel_scope, publish)
        nursery.start_soon(_tell_manager, candidacy, manager)
        await stand_by(candidacy, publish)
        nursery.cancel_scope.cancel()
    return candidacy.leading.is_set()


async def _tell_manager(candidacy: Candidacy, manager: ServiceManager) -> None:
    """Count as started once it is known that this process stands by."""
    await known_to_stand_by(candidacy)
    manager.started()


async def _end_when_asked(scope: trio.CancelScope, publish: Publish) -> None:
    with trio.open_signal_receiver(signal.SIGTERM, signal.SIGINT, signal.SIGHUP) as signals:
        async for number in signals:
            if number != signal.SIGHUP:  # the file is read when this process leads
                publish(DaemonStopped(reason=signal.Signals(number).name))
                scope.cancel()
