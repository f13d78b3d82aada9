"""Programs in a container that try what those in bubblewrap try: none gets out."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
import trio

from sortie.transports import Command
from tests.contract.transport.launching import everything
from tests.transports.containers import (
    ENGINES,
    OneContainer,
    choice,
    container_transport,
    require_engine,
    seen_by_tests,
)
from tests.transports.endings import local_transport
from tests.transports.walls import test_attacks
from tests.transports.walls.attacks import CANARY, CONNECTIONS, READS, SIGNALS, WRITES
from tests.transports.walls.test_attacks import Outside, victim

servers = test_attacks.servers
_LIMIT = 120.0


@pytest.fixture
def outside(tmp_path: Path) -> Outside:
    return Outside(tmp_path)


async def found(container: OneContainer, outside: Outside, script: str, env: dict[str, str]) -> str:
    """Return all that a script writes in a container."""
    command = Command(
        argv=("/bin/sh", "-c", script),
        cwd=str(outside.workspace),
        env=outside.environment(**env),
        grace=0.0,
    )
    with trio.fail_after(_LIMIT):
        async with container.process(command) as process:
            output = await everything(process)
    return (output[1] + output[2]).decode("utf-8", "replace")


@pytest.mark.parametrize("engine", ENGINES)
async def test_none_of_the_attacks_gets_out(
    outside: Outside, servers: dict[str, str], engine: str
) -> None:
    """Nothing outside is read, changed, ended or reached, whatever was tried before."""
    home = outside.place / "home"
    chosen = choice(
        engine=require_engine(engine),
        read=(*seen_by_tests(), str(home / ".config/git")),
        hidden=(str(outside.hidden),),
        home=str(home),
    )
    attacks = {**READS, **SIGNALS, **CONNECTIONS, **WRITES}
    told = []
    pattern = Path("/proc/sys/kernel/core_pattern").read_text()
    async with (
        local_transport("namespaces") as host,
        victim(CANARY) as process,
        container_transport(host, str(outside.workspace), chosen) as container,
    ):
        env = {**servers, "VICTIM": str(process.pid)}
        for name, script in attacks.items():
            if CANARY in await found(container, outside, script, env):
                told.append(name)
        alive = process.poll() is None

    assert told == []
    assert alive
    assert outside.everything() == outside.before
    assert Path("/proc/sys/kernel/core_pattern").read_text() == pattern
    assert not os.path.islink(outside.workspace)
    assert not any(map(os.path.exists, ("/usr/written", "/tmp/written", "/etc/profile.d/x.sh")))
