"""The transports of all hosts, and who hears what becomes of hosts."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from typing import cast

import pytest
import trio
from trio.testing import MockClock

from sortie.config.settings import Isolation, Settings
from sortie.daemon.transports import TransportPool, open_transports
from sortie.facts import Fact
from sortie.model import LOCAL, HostError, HostTrouble, RunId
from sortie.scheduler import Event
from sortie.scheduler import events as ev
from sortie.telemetry import facts
from sortie.transports.ssh.root_locks import RootLocks
from tests.transports.fake import FakeTransport
from tests.worker.rig import settings_of

NOWHERE = "build..1"
"""A name that no resolver takes, so that nobody is asked for it."""


def settings(**agent: object) -> Settings:
    return settings_of(worker={"ssh_hosts": [NOWHERE]}, agent={"kind": "fake", **agent})


def _nobody(_: object) -> None:
    pass


async def trouble(pool: TransportPool) -> str:
    with pytest.raises(HostError) as caught:
        await pool.transport(NOWHERE, settings()).files.contained("/", "/tmp")
    return str(caught.value)


async def test_what_became_of_hosts_before_anybody_listened_is_told() -> None:
    """What the search for left-overs finds at start, before there is a scheduler."""
    heard: list[Event] = []
    async with open_transports(_nobody, {"PATH": "/bin"}) as pool:
        first = await trouble(pool)
        pool.send_events_to(heard.append)
        second = await trouble(pool)

    assert heard == [ev.HostTroubled(NOWHERE, first), ev.HostTroubled(NOWHERE, second)]


async def test_a_daemon_without_hosts_has_nothing_of_ssh() -> None:
    """Its thread is started for the first host, and gone with the pool."""

    def threads() -> list[str]:
        return [thread.name for thread in threading.enumerate() if thread.name == "sortie-ssh"]

    async with open_transports(_nobody, {"PATH": "/bin"}) as pool:
        assert pool.transport(LOCAL, settings()) is pool.local
        assert threads() == []

        await trouble(pool)
        assert threads() == ["sortie-ssh"]

    with trio.fail_after(60):
        while threads():
            await trio.sleep(0.01)


async def test_what_was_ended_on_a_host_is_counted_as_a_hosts(
    autojump_clock: MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Once, and not under its name, of which there may be any number."""
    told: list[Fact] = []
    inner = FakeTransport(directories=["/w"])
    monkeypatch.setattr(
        "sortie.daemon.remote_transports.ShellTransport", lambda *_args, **_options: inner
    )
    monkeypatch.setattr(RootLocks, "hold", hold)
    async with open_transports(told.append, {"PATH": "/bin"}) as pool:
        remote = pool.transport(NOWHERE, settings())
        inner.faults["sweep"] = HostError(HostTrouble.UNREACHABLE, "refused")
        with pytest.raises(HostError):
            await remote.sweep([RunId("run-1")], grace=0.0)
        inner.faults.clear()
        monkeypatch.setattr(inner, "sweep", end_two)
        await remote.files.make_directory("/w", "a")
        await remote.files.make_directory("/w", "b")

    assert told == [facts.OrphansReaped(where="host", count=2)]


async def hold(_locks: RootLocks, _root: str) -> None:
    await trio.lowlevel.checkpoint()


async def end_two(*_args: object, **_options: object) -> int:
    await trio.lowlevel.checkpoint()
    return 2


async def test_what_ends_the_runs_of_a_host_is_told_when_it_changes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Once for all transports of the host; probes are told the last of it."""
    told: list[Fact] = []
    made: list[Mapping[str, object]] = []

    def make(*_args: object, **options: object) -> FakeTransport:
        made.append(options)
        return FakeTransport()

    monkeypatch.setattr("sortie.daemon.remote_transports.ShellTransport", make)
    async with open_transports(told.append, {"PATH": "/bin"}) as pool:
        nothing = pool.host_isolation()
        pool.transport(NOWHERE, settings())
        pool.transport(NOWHERE, settings(read_timeout_ms=60_000))
        for sentence in ("by the kernel", "by the kernel", "by search"):
            for options in made:
                cast(Callable[[str], object], options["isolated"])(sentence)
        last = pool.host_isolation()

    assert [options["isolation"] for options in made] == [Isolation.AUTO] * 2
    assert last == (*nothing, f"host {NOWHERE}: by search")
    assert [sentence.partition(":")[0] for sentence in nothing] == ["host local"]
    assert told == [
        facts.HostIsolation(host=NOWHERE, detail=detail)
        for detail in ("by the kernel", "by search")
    ]
