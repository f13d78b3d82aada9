"""The transports of all hosts, and who hears what becomes of hosts."""

from __future__ import annotations

import pytest

from sortie.config import Settings
from sortie.daemon.fleet import Fleet, open_fleet
from sortie.model import LOCAL, HostError
from sortie.scheduler import Event
from sortie.scheduler import events as ev
from tests.worker.rig import settings_of

NOWHERE = "build..1"
"""A name that no resolver takes, so that nobody is asked for it."""


def settings(**agent: object) -> Settings:
    return settings_of(worker={"ssh_hosts": [NOWHERE]}, agent={"kind": "fake", **agent})


def _nobody(_: object) -> None:
    pass


async def trouble(fleet: Fleet) -> str:
    with pytest.raises(HostError) as caught:
        await fleet.transport(NOWHERE, settings()).contained("/", "/tmp")
    return str(caught.value)


async def test_what_became_of_hosts_before_anybody_listened_is_told() -> None:
    """What the search for left-overs finds at start, before there is a scheduler."""
    heard: list[Event] = []
    async with open_fleet(_nobody, {"PATH": "/bin"}) as fleet:
        first = await trouble(fleet)
        fleet.tell(heard.append)
        second = await trouble(fleet)

    assert heard == [ev.HostTroubled(NOWHERE, first), ev.HostTroubled(NOWHERE, second)]


async def test_hosts_keep_their_transport_while_the_settings_stay() -> None:
    """Another time for the handshake makes another one; this machine has always the same."""
    async with open_fleet(_nobody, {"PATH": "/bin"}) as fleet:
        first = fleet.transport(NOWHERE, settings())
        again = fleet.transport(NOWHERE, settings())
        patient = fleet.transport(NOWHERE, settings(read_timeout_ms=60_000))

        assert first is again
        assert patient is not first
        assert fleet.transport(LOCAL, settings()) is fleet.local
