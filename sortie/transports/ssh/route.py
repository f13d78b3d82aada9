"""Finds the way to a host: its hops with user, address, port and keys, as ssh_config says.

``ssh -G`` reads the configuration, hop by hop, so that it means to us what it means to ssh.
Where there is no ``ssh``, asyncssh's own reader does, as far as it goes.
"""

from __future__ import annotations

import os
import pwd
import re
import shutil
import signal
import socket
from collections.abc import Mapping, Sequence
from contextlib import suppress

import trio
from msgspec import Struct

from sortie.model import HostError, HostTrouble
from sortie.resources import run_in_thread
from sortie.transports.ssh.settings import SshSettings

_MOST_HOPS = 8
_RESOLVE_BOUND = 10.0  # for one ``ssh -G``; a ``Match exec`` may hang
_DESTINATION = re.compile(
    r"(?:ssh://)?(?:(?P<user>[^/]+)@)?"
    r"(?:\[(?P<six>[^\[\]]+)\]|(?P<host>[^:@/\[\]]+)|(?P<bare>[0-9a-fA-F:]+:[0-9a-fA-F:.%]*))"
    r"(?::(?P<port>[0-9]{1,5}))?/?"
)
_Values = Mapping[str, Sequence[str]]


class Destination(Struct, frozen=True, kw_only=True):
    """What is written as ``[user@]host[:port]``."""

    name: str
    user: str | None = None
    port: int | None = None


class Hop(Struct, frozen=True, kw_only=True):
    """One sshd on the way; the last one is the target.

    ``key_name`` is what known_hosts calls it. New keys are written to the first of
    ``known_hosts``. ``identities_only``: of the agent's keys, only those of ``identity_files``.
    """

    name: str
    host: str
    port: int
    user: str
    key_name: str
    known_hosts: tuple[str, ...]
    identity_files: tuple[str, ...]
    identities_only: bool = False
    agent: str | None = None
    proxy_command: str | None = None
    is_target: bool = True

    @property
    def address(self) -> str:
        """Host and port."""
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    @property
    def command_place(self) -> str:
        """How it is reached through its ProxyCommand, without the command's arguments."""
        program = (self.proxy_command or "").split(None, 1)[0]
        return f"{self.address} through the ProxyCommand {program}"


def parse_destination(text: str) -> Destination:
    """Read ``[user@]host[:port]``, ``[::1]:22`` or ``ssh://...``; raise HostError."""
    found = _DESTINATION.fullmatch(text)
    if found is None or text.startswith("-"):
        raise _unusable(text, "it is not of the form [user@]host[:port]")
    name = found["six"] or found["bare"] or found["host"]
    port = int(found["port"]) if found["port"] else None
    if name.startswith("-") or (found["user"] or "").startswith("-"):
        raise _unusable(text, "neither user nor host may begin with -")
    if port is not None and not 0 < port < 65536:
        raise _unusable(text, "its port is not between 1 and 65535")
    return Destination(name=name, user=found["user"], port=port)


async def find_hops(host: str, settings: SshSettings) -> tuple[Hop, ...]:
    """Return the hops to a host, the outermost first; raise HostError."""
    return tuple(await _chain(host, settings, ()))


async def _chain(text: str, settings: SshSettings, seen: tuple[str, ...]) -> list[Hop]:
    if text in seen or len(seen) > _MOST_HOPS:
        raise _unusable(seen[0], f"its ProxyJump goes in a circle: {' -> '.join((*seen, text))}")
    values = await _values(parse_destination(text), settings)
    target = not seen
    jump = _one(values, "proxyjump")
    before: list[Hop] = []
    if jump is not None:
        # Only the first jump host may have a way of its own, as in ssh.
        first, *others = jump.split(",")
        before = await _chain(first.strip(), settings, (*seen, text))
        for other in others:
            further = await _values(parse_destination(other.strip()), settings)
            before.append(_hop(other.strip(), further, settings, target=False, direct=False))
    return [*before, _hop(text, values, settings, target=target, direct=not before)]


async def _values(destination: Destination, settings: SshSettings) -> _Values:
    program = shutil.which("ssh", path=settings.search_path)
    if program is None:
        return await run_in_thread(_read_without_ssh, destination, settings)
    argv = [program, *(["-F", settings.config] if settings.config else [])]
    argv += ["-l", destination.user] if destination.user else []
    argv += ["-p", str(destination.port)] if destination.port else []
    argv += ["-T", "-G", "--", destination.name]
    with trio.move_on_after(_RESOLVE_BOUND):
        done = await trio.run_process(
            argv,
            check=False,
            env=settings.environ,
            stdin=b"",
            capture_stdout=True,
            capture_stderr=True,
            process_group=0,
            deliver_cancel=_kill_group,
        )
        if done.returncode != 0:
            said = done.stderr.decode(errors="replace").strip().rpartition("\n")[2]
            raise _unusable(destination.name, f"ssh cannot read its configuration: {said}")
        return _parsed(done.stdout.decode(errors="surrogateescape"))
    raise _unusable(
        destination.name,
        f"ssh -G did not end in {_RESOLVE_BOUND:.0f} s; is there a Match exec that hangs?",
    )


async def _kill_group(process: trio.Process) -> None:
    """Kill ssh with what a ``Match exec`` has started."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)


def _parsed(text: str) -> _Values:
    values: dict[str, list[str]] = {}
    for line in text.splitlines():
        key, _, value = line.partition(" ")
        values.setdefault(key.lower(), []).append(value)
    return values


def _read_without_ssh(destination: Destination, settings: SshSettings) -> _Values:
    """Read the configuration by asyncssh's reader, in the words of ``ssh -G``."""
    from asyncssh.config import SSHClientConfig

    paths = [settings.config] if settings.config else [_home(".ssh/config"), "/etc/ssh/ssh_config"]
    given = (destination.user or (), destination.name, destination.port or ())
    local = pwd.getpwuid(os.getuid()).pw_name
    try:
        read = SSHClientConfig.load(
            None,
            [path for path in paths if settings.config or os.path.exists(path)],
            False,
            False,
            False,
            local,
            *given,
        )
    except (OSError, ValueError) as exc:
        raise _unusable(destination.name, f"its configuration cannot be read: {exc}") from exc
    defaults = [f"~/.ssh/id_{kind}" for kind in ("rsa", "ecdsa", "ed25519")]
    known = ["~/.ssh/known_hosts", "~/.ssh/known_hosts2", "/etc/ssh/ssh_known_hosts"]

    def told(key: str, default: object) -> list[str]:
        value = read.get(key, default)
        if value is None and default is not None:
            return ["none"]
        many = value if isinstance(value, list | tuple) else [value]
        return [str(one) for one in many if one is not None]

    return {
        "hostname": told("Hostname", destination.name),
        "port": told("Port", destination.port or 22),
        "user": told("User", destination.user or local),
        "hostkeyalias": told("HostKeyAlias", None),
        "identityfile": told("IdentityFile", defaults),
        "identityagent": told("IdentityAgent", "SSH_AUTH_SOCK"),
        "identitiesonly": ["yes" if read.get("IdentitiesOnly") else "no"],
        "proxyjump": told("ProxyJump", None),
        "proxycommand": [" ".join(told("ProxyCommand", None))],
        "userknownhostsfile": [" ".join(told("UserKnownHostsFile", known))],
    }


def _hop(text: str, values: _Values, settings: SshSettings, *, target: bool, direct: bool) -> Hop:
    destination = parse_destination(text)
    host = _one(values, "hostname") or destination.name
    port = int(_one(values, "port") or 22)
    user = _one(values, "user") or pwd.getpwuid(os.getuid()).pw_name
    alias = _one(values, "hostkeyalias")
    tokens = {
        "h": host,
        "p": str(port),
        "r": user,
        "n": destination.name,
        "k": alias or destination.name,
        "d": _home(""),
        "u": pwd.getpwuid(os.getuid()).pw_name,
        "i": str(os.getuid()),
        "l": socket.gethostname(),
        "L": socket.gethostname().split(".")[0],
        "%": "%",
    }
    known = (settings.known_hosts,) if settings.known_hosts else _known_hosts(values)
    identities = settings.identity_files or tuple(values.get("identityfile", ()))
    proxy = _one(values, "proxycommand") if direct else None
    return Hop(
        name=text,
        host=host,
        port=port,
        user=user,
        key_name=(alias or (host if port == 22 else f"[{host}]:{port}")).lower(),
        known_hosts=tuple(_expanded(path, tokens) for path in known),
        identity_files=tuple(_expanded(path, tokens) for path in identities if path != "none"),
        identities_only=_one(values, "identitiesonly") in ("yes", "true"),
        agent=_agent(values, settings, tokens),
        proxy_command=None if proxy is None else _with_tokens(proxy, tokens),
        is_target=target,
    )


def _known_hosts(values: _Values) -> tuple[str, ...]:
    keys = ("userknownhostsfile", "globalknownhostsfile")
    return tuple(p for key in keys for line in values.get(key, ()) for p in line.split())


def _agent(values: _Values, settings: SshSettings, tokens: Mapping[str, str]) -> str | None:
    said = (values.get("identityagent") or ["SSH_AUTH_SOCK"])[0]
    if said == "none":
        return None
    if said in ("SSH_AUTH_SOCK", "$SSH_AUTH_SOCK"):
        return settings.agent
    return _expanded(said, tokens)


def _one(values: _Values, key: str) -> str | None:
    found = values.get(key) or [""]
    return None if found[0] in ("", "none") else found[0]


def _expanded(path: str, tokens: Mapping[str, str]) -> str:
    path = _with_tokens(path, tokens)
    return _home(path[2:]) if path.startswith("~/") else path


def _with_tokens(text: str, tokens: Mapping[str, str]) -> str:
    return re.sub(r"%(.)", lambda found: tokens.get(found[1], found[0]), text)


def _home(path: str) -> str:
    """Return a path below the home that ssh looks at: the account's, whatever HOME says."""
    return os.path.join(pwd.getpwuid(os.getuid()).pw_dir, path)


def _unusable(name: str, flaw: str) -> HostError:
    return HostError(
        HostTrouble.UNREACHABLE,
        f"could not find the way to host {name!r}: {flaw};"
        " check worker.ssh_hosts and worker.ssh_config",
    )
