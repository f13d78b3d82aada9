"""The way into a host: keys of both sides, jump hosts, proxies, and what is said when it fails."""

from __future__ import annotations

import logging
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import asyncssh
import psutil
import pytest
import trio

from sortie.model import HostError, HostTrouble
from sortie.transports.ssh.asyncio_thread import AsyncioThread
from sortie.transports.ssh.connection_pool import ConnectionPool
from sortie.transports.ssh.settings import SshSettings
from tests.transports.ssh.raw import open_raw, output, running
from tests.transports.ssh.sshd import (
    Keys,
    Sshd,
    encrypted_copy,
    new_key,
    requires_sshd,
    sshd_running,
)

pytestmark = requires_sshd
PATIENCE = 60.0


async def said(
    host: str, settings: SshSettings, thread: AsyncioThread, command: str = "echo in"
) -> bytes:
    """Return what a command says on a host, reached anew."""
    connections = ConnectionPool(host, settings, thread)
    with trio.fail_after(PATIENCE):
        try:
            async with running(connections, command) as channel:
                return b"".join([chunk async for _, chunk in output(channel)])
        finally:
            await connections.aclose()


async def refusal(
    host: str, settings: SshSettings, thread: AsyncioThread, trouble: HostTrouble
) -> str:
    """Return why a host cannot be used; nothing of the attempt may be left."""
    connections = ConnectionPool(host, settings, thread)
    before = _open_links()
    with trio.fail_after(PATIENCE), pytest.raises(HostError) as caught:
        await open_raw(connections, "true")
    assert caught.value.trouble is trouble
    assert connections.links == connections.sessions == 0
    assert _open_links() - before == set()
    return str(caught.value)


def _open_links() -> set[object]:
    """Return the connections of this process by their own ends: a failed test may have left one."""
    return {link.laddr for link in psutil.Process().net_connections("tcp") if link.raddr}


@contextmanager
def agent_with(directory: Path, *files: Path) -> Iterator[str]:
    """Run an ssh-agent that holds keys; yield its socket."""
    address = str(directory / "agent.sock")
    agent = subprocess.Popen(["ssh-agent", "-D", "-a", address], stdout=subprocess.PIPE)
    try:
        assert agent.stdout is not None
        agent.stdout.readline()
        for file in files:
            subprocess.run(
                ["ssh-add", "-q", file],
                env={**os.environ, "SSH_AUTH_SOCK": address},
                check=True,
                capture_output=True,
            )
        yield address
    finally:
        agent.kill()
        agent.communicate()


async def test_a_first_meeting_is_remembered_and_later_ones_are_checked(
    sshd: Sshd, thread: AsyncioThread
) -> None:
    """accept-new lets the host in once; another key under its address is refused afterwards."""
    assert await said(sshd.host, sshd.settings, thread) == b"in\n"
    sshd.stop()
    sshd.host_key.unlink()
    new_key(sshd.host_key)
    sshd.start()

    message = await refusal(sshd.host, sshd.settings, thread, HostTrouble.HOST_KEY)

    assert f"{sshd.keys.known_hosts}:1" in message
    assert f"ssh-keygen -R '[127.0.0.1]:{sshd.port}' -f {sshd.keys.known_hosts}" in message


async def test_a_changed_type_of_key_is_a_host_key_trouble(
    sshd: Sshd, thread: AsyncioThread
) -> None:
    """A host that shows a type we do not know from it is refused for that, and does not hang up."""
    assert await said(sshd.host, sshd.settings, thread) == b"in\n"
    sshd.stop()
    sshd.host_key.unlink()
    new_key(sshd.host_key, kind="ecdsa-sha2-nistp256")
    sshd.start()

    await refusal(sshd.host, sshd.settings, thread, HostTrouble.HOST_KEY)


async def test_an_unknown_host_is_refused_with_yes(sshd: Sshd, thread: AsyncioThread) -> None:
    """``yes`` wants the host known beforehand, and a new look is taken at each dial."""
    strict = replace(sshd.settings, strict="yes")

    message = await refusal(sshd.host, strict, thread, HostTrouble.HOST_KEY)

    assert "ssh-keyscan" in message
    sshd.know()  # as another process would write it
    assert await said(sshd.host, strict, thread) == b"in\n"


async def test_a_revoked_key_is_refused_whatever_the_setting(
    sshd: Sshd, thread: AsyncioThread
) -> None:
    """``@revoked`` beats ``no``."""
    public = " ".join(Path(f"{sshd.host_key}.pub").read_text().split()[:2])
    sshd.keys.known_hosts.write_text(f"@revoked [127.0.0.1]:{sshd.port} {public}\n")
    lax = replace(sshd.settings, strict="no")

    message = await refusal(sshd.host, lax, thread, HostTrouble.HOST_KEY)

    assert "@revoked" in message


async def test_a_certified_host_is_known(sshd: Sshd, thread: AsyncioThread, tmp_path: Path) -> None:
    """A host certificate of an authority in known_hosts is accepted with ``yes``."""
    authority = asyncssh.generate_private_key("ssh-ed25519")
    host_key = asyncssh.read_public_key(f"{sshd.host_key}.pub")
    authority.generate_host_certificate(
        host_key, "host", principals=["127.0.0.1"]
    ).write_certificate(f"{sshd.host_key}-cert.pub")
    sshd.options["HostCertificate"] = f"{sshd.host_key}-cert.pub"
    sshd.stop()
    sshd.start()
    line = authority.export_public_key("openssh").decode()
    sshd.keys.known_hosts.write_text(f"@cert-authority [127.0.0.1]:{sshd.port} {line}")

    assert await said(sshd.host, replace(sshd.settings, strict="yes"), thread) == b"in\n"


async def test_an_alias_is_reached_and_its_session_options_are_not_followed(
    sshd: Sshd, thread: AsyncioThread
) -> None:
    """HostName and Port of the alias count; a terminal or a command of its own does not."""
    sshd.alias("box", "RequestTTY force", "RemoteCommand echo wrong", "SetEnv X=1")

    assert await said("box", sshd.settings, thread, "tty; echo $X") == b"not a tty\n\n"


@pytest.fixture
def second(tmp_path: Path, keys: Keys) -> Iterator[Sshd]:
    """Give another host of the same client."""
    with sshd_running(tmp_path / "second", keys) as host:
        yield host


@pytest.fixture
def third(tmp_path: Path, keys: Keys) -> Iterator[Sshd]:
    """Give a third one."""
    with sshd_running(tmp_path / "third", keys) as host:
        yield host


async def test_jump_hosts_are_passed_one_after_the_other(
    sshd: Sshd, second: Sshd, third: Sshd, thread: AsyncioThread
) -> None:
    """A command runs on the last hop; each hop's key is remembered."""
    second.alias("outer")
    third.alias("inner", "ProxyJump outer")
    sshd.alias("box", "ProxyJump inner")

    assert await said("box", sshd.settings, thread, 'echo "$HOME"') == f"{sshd.home}\n".encode()

    names = [line.split()[0] for line in sshd.keys.known_hosts.read_text().splitlines()]
    assert names == [f"[127.0.0.1]:{host.port}" for host in (second, third, sshd)]


async def test_every_hops_key_is_checked(sshd: Sshd, second: Sshd, thread: AsyncioThread) -> None:
    """With ``yes``, an unknown jump host is refused though the target is known, and vice versa."""
    second.alias("outer")
    sshd.alias("box", "ProxyJump outer")
    strict = sshd.know()

    of_jump = await refusal("box", strict, thread, HostTrouble.HOST_KEY)
    sshd.keys.known_hosts.write_text("")
    second.know()
    of_target = await refusal("box", strict, thread, HostTrouble.HOST_KEY)

    assert "jump host outer" in of_jump
    assert "host box" in of_target


async def test_a_jump_host_that_leads_nowhere_is_told(
    sshd: Sshd, second: Sshd, thread: AsyncioThread
) -> None:
    """What the jump host could not reach is said with the jump host's name."""
    second.alias("outer")
    sshd.alias("box", "ProxyJump outer")
    sshd.stop()

    message = await refusal("box", sshd.settings, thread, HostTrouble.UNREACHABLE)

    assert "outer could not connect to it" in message


_RELAY = """
import os, pathlib, socket, sys, threading, time
pathlib.Path(__file__).with_suffix(".pid").write_text(str(os.getpid()))
link = socket.create_connection((sys.argv[1], int(sys.argv[2])))
def inward():
    while data := link.recv(65536):
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()
threading.Thread(target=inward, daemon=True).start()
while data := sys.stdin.buffer.read1(65536):
    link.sendall(data)
time.sleep(1000)  # one that does not see when it is no longer needed
"""


async def test_a_proxy_command_is_the_way_and_ends_with_it(
    sshd: Sshd, thread: AsyncioThread, tmp_path: Path
) -> None:
    """The command gets host and port; no process of it is left when the connection is closed."""
    relay = tmp_path / "relay.py"
    relay.write_text(_RELAY)
    sshd.alias("box", f"ProxyCommand {sys.executable} {relay} %h %p")

    assert await said("box", sshd.settings, thread) == b"in\n"

    assert not psutil.pid_exists(int(relay.with_suffix(".pid").read_text()))


async def test_what_a_failing_proxy_command_says_is_told(
    sshd: Sshd, thread: AsyncioThread, tmp_path: Path
) -> None:
    """Its stderr is part of the message; its arguments, which may be secret, are not."""
    script = tmp_path / "proxy"
    script.write_text("#!/bin/sh\necho no route for you >&2\n")
    script.chmod(0o755)
    sshd.alias("box", f"ProxyCommand {script} --token s3cret")

    message = await refusal("box", sshd.settings, thread, HostTrouble.UNREACHABLE)

    assert "no route for you" in message
    assert str(script) in message
    assert "s3cret" not in message


async def test_a_login_that_fails_names_user_keys_and_remedy(
    sshd: Sshd, thread: AsyncioThread, tmp_path: Path
) -> None:
    """Tried keys, passed-over ones and why; missing files are ignored as ssh ignores them."""
    stranger = new_key(tmp_path / "stranger")
    encrypted = encrypted_copy(stranger, tmp_path / "encrypted")
    garbage = tmp_path / "garbage"
    garbage.write_text("no key")
    files = (str(tmp_path / "missing"), str(stranger), str(encrypted), str(garbage))
    settings = replace(sshd.settings, identity_files=files)

    message = await refusal(f"nobody@{sshd.host}", settings, thread, HostTrouble.AUTHENTICATION)

    assert "as user nobody" in message
    assert f"it accepted none of {stranger} (" in message
    assert f"{encrypted} (encrypted" in message
    assert f"{garbage} (not a private key" in message
    assert "missing" not in message
    assert "authorized_keys" in message


async def test_no_key_at_all_is_told(sshd: Sshd, thread: AsyncioThread, tmp_path: Path) -> None:
    """Where there is nothing to offer the message says so, and no key of the machine is used."""
    settings = replace(sshd.settings, identity_files=(str(tmp_path / "missing"),))

    message = await refusal(sshd.host, settings, thread, HostTrouble.AUTHENTICATION)

    assert f"there is no key to offer: no such file as {tmp_path / 'missing'}" in message


async def test_the_agents_keys_log_in(sshd: Sshd, thread: AsyncioThread, tmp_path: Path) -> None:
    """A key that only the agent can use is used; a missing agent is named when all fails."""
    encrypted = encrypted_copy(sshd.keys.key, tmp_path / "encrypted")
    settings = replace(sshd.settings, identity_files=(str(encrypted),))

    with agent_with(tmp_path, sshd.keys.key) as agent:
        assert await said(sshd.host, replace(settings, agent=agent), thread) == b"in\n"
    message = await refusal(
        sshd.host, replace(settings, agent=agent), thread, HostTrouble.AUTHENTICATION
    )

    assert f"the agent {agent}" in message


async def test_identities_only_keeps_the_agents_other_keys_back(
    sshd: Sshd, thread: AsyncioThread, tmp_path: Path
) -> None:
    """With IdentitiesOnly, the agent's key is offered only where its public half is configured."""
    stranger = new_key(tmp_path / "stranger")
    public = Path(f"{sshd.keys.key}.pub")
    sshd.alias("box", "IdentitiesOnly yes")

    with agent_with(tmp_path, sshd.keys.key) as agent:
        settings = replace(sshd.settings, agent=agent, identity_files=(str(stranger),))
        message = await refusal("box", settings, thread, HostTrouble.AUTHENTICATION)
        settings = replace(settings, identity_files=(str(public),))
        assert await said("box", settings, thread) == b"in\n"

    assert "agent" not in message


async def test_too_many_keys_are_an_authentication_trouble(
    sshd: Sshd, thread: AsyncioThread, tmp_path: Path
) -> None:
    """A host that hangs up after so many keys is told as what it is."""
    files = tuple(str(new_key(tmp_path / f"key{number}")) for number in range(8))

    settings = replace(sshd.settings, identity_files=files)

    await refusal(sshd.host, settings, thread, HostTrouble.AUTHENTICATION)


async def test_nothing_listening_is_told(sshd: Sshd, thread: AsyncioThread) -> None:
    """A refused connection says to look at sshd and the port."""
    sshd.stop()

    message = await refusal(sshd.host, sshd.settings, thread, HostTrouble.UNREACHABLE)

    assert "nothing listens there" in message


async def test_what_is_no_ssh_server_is_told(keys: Keys, thread: AsyncioThread) -> None:
    """A server that hangs up says to look at what listens there."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]

        async def hang_up() -> None:
            link, _ = await trio.to_thread.run_sync(server.accept)
            link.close()

        async with trio.open_nursery() as nursery:
            nursery.start_soon(hang_up)
            message = await refusal(
                f"127.0.0.1:{port}", keys.settings, thread, HostTrouble.UNREACHABLE
            )

    assert "hung up before the login" in message


async def test_a_dial_is_bounded(
    keys: Keys, thread: AsyncioThread, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A host that accepts and never speaks is given up, with its whole dial."""
    monkeypatch.setattr("sortie.transports.ssh.connection.CONNECT_LIMIT", 0.1)
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]

        message = await refusal(f"127.0.0.1:{port}", keys.settings, thread, HostTrouble.UNREACHABLE)

    assert "did not answer within" in message


async def test_a_jump_host_that_dies_takes_the_link_along(
    sshd: Sshd, second: Sshd, thread: AsyncioThread
) -> None:
    """Behind a lost hop nothing hangs."""
    second.alias("outer")
    sshd.alias("box", "ProxyJump outer")
    connections = ConnectionPool("box", sshd.settings, thread)

    with trio.fail_after(PATIENCE):
        async with running(connections, "exec cat") as channel:
            second.kill_links()
            await channel.over.wait()
    await connections.aclose()

    assert channel.lost is not None
    assert channel.lost.trouble is HostTrouble.DROPPED


async def test_commands_and_their_data_stay_out_of_the_log(
    sshd: Sshd, thread: AsyncioThread, caplog: pytest.LogCaptureFixture
) -> None:
    """Whatever level the log has, asyncssh's talk of commands does not get there."""
    with caplog.at_level(logging.DEBUG):
        await said(sshd.host, sshd.settings, thread, "echo s3cret")

    assert "s3cret" not in caplog.text
