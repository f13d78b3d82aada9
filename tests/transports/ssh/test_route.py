"""The way to a host, as ssh_config says."""

from __future__ import annotations

import dataclasses
import os
import pwd
import secrets
import shutil
from pathlib import Path

import psutil
import pytest
import trio
from msgspec.structs import replace

from sortie.model import HostError, HostTrouble
from sortie.transports.ssh.route import Destination, Hop, find_hops, parse_destination
from sortie.transports.ssh.settings import SshSettings

USER = pwd.getpwuid(os.getuid()).pw_name
HOME = pwd.getpwuid(os.getuid()).pw_dir

requires_ssh = pytest.mark.skipif(shutil.which("ssh") is None, reason="there is no ssh")


class Config:
    """An ssh_config in a directory of the test."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self._path = directory / "config"

    def __call__(self, *lines: str) -> SshSettings:
        self._path.write_text("\n".join(lines) + "\n")
        return SshSettings(config=str(self._path), search_path=os.environ["PATH"])


@pytest.fixture(params=[pytest.param("ssh -G", marks=requires_ssh), "asyncssh"])
def config(request: pytest.FixtureRequest, tmp_path: Path) -> Config:
    """Give a maker of settings, read by ssh and read without it."""
    made = Config(tmp_path)
    if request.param == "ssh -G":
        return made

    class WithoutSsh(Config):
        def __call__(self, *lines: str) -> SshSettings:
            return dataclasses.replace(super().__call__(*lines), search_path=str(tmp_path))

    return WithoutSsh(tmp_path)


@pytest.fixture
def config_of_ssh(tmp_path: Path) -> Config:
    """Give a maker of settings that ssh reads."""
    if shutil.which("ssh") is None:
        pytest.skip("there is no ssh")
    return Config(tmp_path)


@pytest.mark.parametrize(
    ("text", "destination"),
    [
        ("box", Destination(name="box")),
        ("me@box", Destination(name="box", user="me")),
        ("me@box:2222", Destination(name="box", user="me", port=2222)),
        ("me@corp@box", Destination(name="box", user="me@corp")),
        ("[::1]:2222", Destination(name="::1", port=2222)),
        ("me@[fe80::1%eth0]", Destination(name="fe80::1%eth0", user="me")),
        ("::1", Destination(name="::1")),
        ("ssh://me@box:22", Destination(name="box", user="me", port=22)),
    ],
)
def test_a_host_is_read_as_user_name_and_port(text: str, destination: Destination) -> None:
    """``[user@]host[:port]``, IPv6 addresses with a port in brackets."""
    assert parse_destination(text) == destination


@pytest.mark.parametrize(
    "text",
    [
        "",
        "-oProxyCommand=x",
        "-l@box",
        "me@-box",
        "[-x]:22",
        "ssh://-box",
        "box:0",
        "box:70000",
        "box:x",
        "a b:c:d",
        "@box",
        "box/x",
    ],
)
def test_what_is_no_host_is_refused(text: str) -> None:
    """Nothing that ssh could take for an option, or that names no host, gets any further."""
    with pytest.raises(HostError) as caught:
        parse_destination(text)

    assert caught.value.trouble is HostTrouble.UNREACHABLE
    assert repr(text) in str(caught.value)


async def test_an_alias_stands_for_what_the_configuration_says(config: Config) -> None:
    """HostName, Port, User, IdentityFile, HostKeyAlias and UserKnownHostsFile are followed."""
    settings = config(
        "Host box",
        "  HostName 10.1.2.3",
        "  Port 2200",
        "  User kim",
        "  IdentityFile ~/.ssh/box_key",
        "  IdentitiesOnly yes",
        "  IdentityAgent /run/agent.sock",
        "  UserKnownHostsFile /k/one",
        "  GlobalKnownHostsFile none",
        "  RequestTTY force",
        "  RemoteCommand top",
    )

    hops = await find_hops("box", settings)

    assert [replace(hop, known_hosts=hop.known_hosts[:1]) for hop in hops] == [
        Hop(
            name="box",
            host="10.1.2.3",
            port=2200,
            user="kim",
            key_name="[10.1.2.3]:2200",
            known_hosts=("/k/one",),
            identity_files=(f"{HOME}/.ssh/box_key",),
            identities_only=True,
            agent="/run/agent.sock",
        )
    ]


async def test_what_the_host_itself_says_beats_the_configuration(config: Config) -> None:
    """User and port given with the host win, as on ssh's command line."""
    settings = config("Host box", "  Port 2200", "  User kim")

    (hop,) = await find_hops("lee@box:22", settings)

    assert (hop.host, hop.port, hop.user, hop.key_name) == ("box", 22, "lee", "box")


async def test_workflow_settings_beat_the_configuration(config: Config) -> None:
    """``worker.ssh_known_hosts`` and ``ssh_identity_files`` hold on every hop."""
    settings = config(
        "Host box",
        "  ProxyJump jump",
        "  IdentityFile /no",
        "  UserKnownHostsFile /no",
        "Host jump",
        "  IdentityFile /no",
    )
    settings = dataclasses.replace(settings, known_hosts="/my/known", identity_files=("/my/key",))

    hops = await find_hops("box", settings)

    assert [(hop.known_hosts, hop.identity_files) for hop in hops] == [
        (("/my/known",), ("/my/key",))
    ] * 2


async def test_jump_hosts_come_first_each_with_its_own_configuration(config: Config) -> None:
    """ProxyJump is followed by alias and by user@host:port, through jump hosts of jump hosts."""
    settings = config(
        "Host box",
        "  HostName box.internal",
        "  ProxyJump near,pat@far:2200",
        "Host near",
        "  HostName near.example",
        "  User nina",
        "  ProxyJump outer",
        "Host outer",
        "  Port 2022",
    )

    hops = await find_hops("box", settings)

    assert [(hop.user, hop.host, hop.port, hop.is_target) for hop in hops] == [
        (USER, "outer", 2022, False),
        ("nina", "near.example", 22, False),
        ("pat", "far", 2200, False),
        (USER, "box.internal", 22, True),
    ]


async def test_a_jump_host_for_all_hosts_is_refused(config: Config) -> None:
    """``Host *`` with a ProxyJump sends the jump host through itself: an error, as in ssh."""
    settings = config("Host *", "  ProxyJump outer")

    with pytest.raises(HostError, match=r"loop|circle"):
        await find_hops("box", settings)


async def test_jumping_in_circles_is_told(config: Config) -> None:
    """Two hosts that jump over each other are an error with both names."""
    settings = config("Host a", "  ProxyJump b", "Host b", "  ProxyJump a")

    with pytest.raises(HostError, match="a -> b -> a"):
        await find_hops("a", settings)


async def test_a_proxy_command_is_expanded(config: Config) -> None:
    """%h %p %r %% stand for what they stand for in ssh; the first hop alone has a command."""
    settings = config(
        "Host box", "  HostName 10.0.0.9", "  User kim", "  ProxyCommand relay %r %h:%p 5%%"
    )

    (hop,) = await find_hops("box", settings)

    assert hop.proxy_command == "relay kim 10.0.0.9:22 5%"
    assert "5%" not in hop.command_place


async def test_the_agent_is_the_daemons_unless_said_otherwise(config: Config) -> None:
    """IdentityAgent: unset and SSH_AUTH_SOCK mean ours, ``none`` means no agent."""
    settings = config(
        "Host none", "  IdentityAgent none", "Host same", "  IdentityAgent SSH_AUTH_SOCK"
    )
    settings = dataclasses.replace(settings, agent="/our/agent")

    agents = [(await find_hops(name, settings))[0].agent for name in ("other", "same", "none")]

    assert agents == ["/our/agent", "/our/agent", None]


async def test_a_configuration_that_cannot_be_read_is_told(config: Config) -> None:
    """A missing or wrong file is an error that names the host and what is wrong."""
    settings = config("Port many")

    with pytest.raises(HostError, match=r"'box'.*config"):
        await find_hops("box", settings)
    with pytest.raises(HostError, match=r"'box'.*config"):
        await find_hops("box", dataclasses.replace(settings, config=f"{config.directory}/none"))


async def test_ssh_reads_match_and_include_and_tokens(config_of_ssh: Config) -> None:
    """``ssh -G`` gives what asyncssh cannot: tokens in UserKnownHostsFile, Match exec, Include."""
    (config_of_ssh.directory / "more").write_text("Host box\n  User included\n")
    settings = config_of_ssh(
        f"Include {config_of_ssh.directory}/more",
        'Match originalhost box exec "true"',
        "  HostName 10.0.0.7",
        "  UserKnownHostsFile ~/.ssh/of_%h /second",
        "  HostKeyAlias Known",
    )

    (hop,) = await find_hops("box", settings)

    assert (hop.user, hop.host, hop.key_name) == ("included", "10.0.0.7", "known")
    assert hop.known_hosts[:2] == (f"{HOME}/.ssh/of_10.0.0.7", "/second")


async def test_a_match_that_hangs_is_given_up(
    config_of_ssh: Config, monkeypatch: pytest.MonkeyPatch
) -> None:
    """``Match exec`` cannot hold a dial up for ever."""
    monkeypatch.setattr("sortie.transports.ssh.route._RESOLVE_BOUND", 0.1)
    marker = f"{1000 + secrets.randbelow(10**9)}.5"
    settings = config_of_ssh(f'Match exec "exec sleep {marker}"', "  User x")

    with trio.fail_after(60), pytest.raises(HostError, match="Match exec"):
        await find_hops("box", settings)
    assert [p.pid for p in psutil.process_iter() if marker in _command_line(p)] == []


def _command_line(process: psutil.Process) -> str:
    try:
        return " ".join(process.cmdline())
    except psutil.Error:
        return ""
