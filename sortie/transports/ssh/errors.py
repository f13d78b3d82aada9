"""Translates what goes wrong on the way to a host into HostError, with what to do about it."""

from __future__ import annotations

import socket

import asyncssh

from sortie.model import HostError, HostTrouble
from sortie.transports.ssh.identities import Identities
from sortie.transports.ssh.route import Hop

CONNECT_LIMIT = 30.0  # for everything, from the first packet to the login of the last hop

_HUNG_UP = (asyncssh.ConnectionLost, ConnectionResetError, BrokenPipeError, EOFError)


def loss(exc: Exception | None, host: str) -> HostError:
    """Return the error for a link that was lost while it was used."""
    if exc is None:
        reason = "the host closed the session without telling how the command ended"
    elif "keepalive" in str(exc):
        reason = "the host has not answered for 45 s"
    else:
        reason = _text(exc)
    return HostError(
        HostTrouble.DROPPED,
        f"lost the link to host {host}: {reason};"
        " look at the network and at the log of the host's sshd",
    )


def refusal(exc: asyncssh.ChannelOpenError, host: str) -> HostError:
    """Return the error for a host that lets us in and runs nothing for us."""
    return HostError(
        HostTrouble.UNREACHABLE,
        f"host {host} refused to start a session: {exc.reason or exc.code};"
        " look at MaxSessions, ForceCommand and the login shell there",
    )


def dial_trouble(
    exc: Exception, host: str, hop: Hop, *, via: Hop | None = None, said: str = ""
) -> HostError:
    """Return the error for a hop that could not be connected to; not for keys of either side.

    ``via`` is the hop before it, ``said`` what a ProxyCommand wrote to stderr.
    """
    where = f"host {host}" if hop.is_target else f"host {host}: its jump host {hop.name}"
    place = hop.command_place if hop.proxy_command else hop.address
    return HostError(
        HostTrouble.UNREACHABLE,
        f"could not reach {where} at {place}: {_advice(exc, hop, via)}"
        + (f"; the command said: {said}" if said else ""),
    )


def _advice(exc: Exception, hop: Hop, via: Hop | None) -> str:
    match exc:
        case asyncssh.ChannelOpenError():
            through = via.name if via else "the jump host"
            return (
                f"{through} could not connect to it ({exc.reason or exc.code}); check from there,"
                " and AllowTcpForwarding in its sshd_config"
            )
        case socket.gaierror():
            return (
                f"there is no address for the name {hop.host} ({exc.strerror});"
                " check worker.ssh_hosts, and HostName in the ssh_config"
            )
        case ConnectionRefusedError():
            return "nothing listens there; check that sshd runs, and the port"
        case TimeoutError():
            return (
                f"it did not answer within {CONNECT_LIMIT:.0f} s; check that it is up, and that"
                " no firewall drops the packets"
            )
        case asyncssh.KeyExchangeFailed():
            return f"there is no algorithm that both sides accept ({exc.reason})"
        case _ if isinstance(exc, _HUNG_UP):
            return (
                "it hung up before the login; check that an SSH server listens there, and whether"
                " it is overloaded (MaxStartups) or bans this machine"
            )
        case _:
            return _text(exc)


def _text(exc: Exception) -> str:
    if isinstance(exc, OSError) and exc.strerror:
        return exc.strerror
    if isinstance(exc, asyncssh.DisconnectError):
        return exc.reason
    return str(exc) or type(exc).__name__


def login_trouble(host: str, hop: Hop, keys: Identities) -> HostError:
    """Return the error for a hop that did not let us in, with the keys tried and passed over."""
    where = f"host {host}" if hop.is_target else f"host {host}: its jump host {hop.name}"
    offered = f"it accepted none of {', '.join(keys.tried)}"
    if not keys.tried:
        absent = f": no such file as {' or '.join(keys.missing)}" if keys.missing else ""
        offered = f"there is no key to offer{absent}"
    over = f" (passed over: {', '.join(keys.passed)})" if keys.passed else ""
    return HostError(
        HostTrouble.AUTHENTICATION,
        f"could not log in to {where} as user {hop.user} at {hop.address}: {offered}{over};"
        " check the user name, put the public key into authorized_keys there, or name another key"
        " under worker.ssh_identity_files or in the ssh_config (passwords are never asked for)",
    )
