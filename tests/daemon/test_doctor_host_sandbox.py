"""The doctor enters each sandbox on a host and says what held."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from sortie.config.sandbox import SandboxSettings
from sortie.config.settings import Isolation, Settings
from sortie.daemon.doctor.host_sandbox import host_sandbox_checks
from sortie.model.checks import CheckOutcome, CheckResult
from sortie.transports.remote.transport import ShellTransport
from tests.transports.containers import (
    IMAGE,
    engine_environ,
    requires_containers,
    seen_by_tests,
)
from tests.transports.endings import requires_namespaces
from tests.transports.sandboxes import requires_bubblewrap
from tests.transports.ssh.pipes import Logins
from tests.worker.rig import settings_of

pytestmark = [requires_namespaces, requires_bubblewrap]


@pytest.fixture
def port() -> Iterator[int]:
    """Give the port of a server that stands for that of SSH."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


async def found(
    home: Path, port: int, isolation: Isolation = Isolation.AUTO, **sandbox: object
) -> CheckResult:
    """Return what the check of a sandbox finds."""
    settings: Settings = settings_of(agent={"kind": "kiro"}).model_copy(
        update={
            "sandbox": SandboxSettings.model_validate({"kind": "bubblewrap", **sandbox}),
            "db_path": str(home / "a.db"),
        }
    )
    logins = Logins(home, SSH_CONNECTION=f"127.0.0.1 1 127.0.0.1 {port}")
    host = ShellTransport("h", logins.connections, isolation=isolation)
    (check,) = host_sandbox_checks(settings, os.environ, lambda: host)
    result = await check.ask()
    await logins.quiet()
    assert [path.name for path in home.iterdir() if "doctor" in path.name] == []
    return result


@pytest.mark.parametrize(
    ("network", "told"),
    [("full", "the network is the host's"), ("none", "it reaches no server of this machine")],
)
async def test_bubblewrap_holds(tmp_path: Path, port: int, network: str, told: str) -> None:
    """It is said of the network what the settings want, and nothing is left behind."""
    result = await found(tmp_path, port, network=network)

    assert result.outcome is CheckOutcome.OK
    assert result.sentence == (
        f"a program in bubblewrap reads, changes and ends nothing outside; {told}"
    )


async def test_a_wall_that_shows_what_is_outside_is_told(tmp_path: Path, port: int) -> None:
    """Where the settings let everything through, the doctor says so."""
    result = await found(tmp_path, port, read=["~"], write=["~"])

    assert result.outcome is CheckOutcome.FAILED
    assert "files outside can be read" in result.sentence
    assert "files outside can be changed" in result.sentence


async def test_a_wrapper_that_holds_nothing_is_told(tmp_path: Path, port: int) -> None:
    """What it lets through is its own affair, so it is a warning."""
    wall = tmp_path / "wall"
    wall.write_text('#!/bin/sh\nexec "$@"\n')
    wall.chmod(0o755)

    result = await found(tmp_path, port, kind="command", command=str(wall), network="none")

    assert result.outcome is CheckOutcome.WARNING
    assert "processes outside can be ended" not in result.sentence  # it has a PID namespace
    assert "servers of this machine can be reached" in result.sentence


async def test_a_host_that_has_none_is_told(tmp_path: Path, port: int) -> None:
    """With the reason, and what to do."""
    result = await found(tmp_path, port, Isolation.NONE)

    assert result.outcome is CheckOutcome.FAILED
    assert "needs a PID namespace" in result.sentence


@requires_containers
async def test_a_container_holds(
    tmp_path: Path, port: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is entered as bubblewrap is, on the host."""
    for name, value in engine_environ().items():
        monkeypatch.setenv(name, value)

    result = await found(
        tmp_path, port, kind="container", image=IMAGE, network="none", read=seen_by_tests()
    )

    assert result.outcome is CheckOutcome.OK, result.sentence
    assert result.sentence == (
        "a program in a container reads, changes and ends nothing outside; it reaches no server of"
        " this machine"
    )


@requires_containers
async def test_an_engine_that_a_host_has_not_is_told(tmp_path: Path, port: int) -> None:
    """With what can be done."""
    result = await found(tmp_path, port, kind="container", image=IMAGE, engine="no-such-engine")

    assert result.outcome is CheckOutcome.FAILED
    assert "has no no-such-engine" in result.sentence
