"""Take the port: sockets are bound before anything is served, so that the URL is known.

Rule 1: all sockets of a listener have the same port.
Rule 2: without a configured token only this machine can connect.
"""

from __future__ import annotations

import errno
import ipaddress
import os
import socket

import trio
from msgspec import Struct

from sortie.model import SortieError
from sortie.model.addresses import is_loopback

PORTS_TO_TRY = 10
"""How many ports after the default one are tried where that is taken."""

_BACKLOG = 128


class ListenError(SortieError):
    """The HTTP server could not take its address."""


class ListenAddress(Struct, frozen=True, kw_only=True):
    """The address to take.

    ``asked``: a setting names this very port, so no other is tried. ``token_given``: a token was
    configured, not generated. ``setting`` is where another port is chosen.
    """

    host: str
    port: int
    asked: bool = True
    token_given: bool = False
    setting: str = "server.port or --port (0: no server)"


class HttpListener(Struct, frozen=True, kw_only=True):
    """Bound sockets that listen; ``wanted_port`` is set where another port was to be taken."""

    sockets: tuple[socket.socket, ...]
    host: str
    port: int
    loopback: bool
    wanted_port: int | None = None

    @property
    def url(self) -> str:
        """The address as a person would type it."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"http://{host}:{self.port}/"

    @property
    def local_url(self) -> str:
        """The address by which this machine reaches it, without any name to be looked up."""
        address = ipaddress.ip_address(self.sockets[0].getsockname()[0].partition("%")[0])
        if address.is_unspecified:
            address = ipaddress.ip_address("::1" if address.version == 6 else "127.0.0.1")
        host = f"[{address}]" if address.version == 6 else str(address)
        return f"http://{host}:{self.port}/"

    def close(self) -> None:
        """Give the port back; safe more than once."""
        for sock in self.sockets:
            sock.close()


async def listen(endpoint: ListenAddress) -> HttpListener:
    """Bind and listen on every address of the host; port 0 takes any free port.

    Raises ListenError where the host is unknown or not ours, the port is taken or needs
    privileges, or others could connect and no token was given.
    """
    addresses = await _addresses(endpoint)
    loopback = all(is_loopback(address) for address in addresses)
    if not loopback and not endpoint.token_given:
        raise ListenError(
            f"server.host {endpoint.host} can be reached from other machines: set "
            "server.auth_token to a $VAR that holds a token, or use 127.0.0.1"
        )
    last = endpoint.port if endpoint.asked else min(endpoint.port + PORTS_TO_TRY, 65535)
    for port in range(endpoint.port, last + 1):
        sockets = _bind_all(endpoint.host, addresses, port)
        if sockets:
            return HttpListener(
                sockets=sockets,
                host=endpoint.host,
                port=sockets[0].getsockname()[1],
                loopback=loopback,
                wanted_port=endpoint.port if port != endpoint.port else None,
            )
    if endpoint.asked:
        raise ListenError(
            f"port {endpoint.port} on {endpoint.host} is taken: stop what uses it, or choose "
            f"another with {endpoint.setting}"
        )
    raise ListenError(
        f"ports {endpoint.port} to {last} on {endpoint.host} are all taken: choose another with "
        "server.port or --port (0: no server)"
    )


async def _addresses(endpoint: ListenAddress) -> tuple[str, ...]:
    try:
        found = await trio.socket.getaddrinfo(
            endpoint.host, endpoint.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )
    except (OSError, UnicodeError) as error:  # UnicodeError: the name cannot be a host name
        reason = error.strerror if isinstance(error, OSError) else "it is not a host name"
        raise ListenError(
            f"server.host {endpoint.host!r} cannot be resolved: {reason}; use an address of this "
            "machine, such as 127.0.0.1"
        ) from error
    return tuple(dict.fromkeys(str(address[0]) for *_, address in found))


def _bind_all(host: str, addresses: tuple[str, ...], port: int) -> tuple[socket.socket, ...]:
    """Bind the addresses that this machine has; return nothing where the port is taken."""
    sockets: list[socket.socket] = []
    missing: OSError | None = None
    for address in addresses:
        try:
            sock = _bind(address, port, alone=len(addresses) == 1)
        except OSError as error:
            # "localhost" may stand for ::1 too, on a machine without IPv6.
            if error.errno in {errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT}:
                missing = error
                continue
            for other in sockets:
                other.close()
            if error.errno == errno.EADDRINUSE:
                return ()
            raise _cannot_bind(host, port, error) from error
        sockets.append(sock)
        port = sock.getsockname()[1]
    if not sockets and missing is not None:
        raise _cannot_bind(host, port, missing) from missing
    return tuple(sockets)


def _bind(address: str, port: int, *, alone: bool) -> socket.socket:
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    sock = socket.socket(family, socket.SOCK_STREAM)
    try:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0 if alone else 1)
        sock.bind((address, port))
        sock.listen(_BACKLOG)
    except OSError:
        sock.close()
        raise
    return sock


def _cannot_bind(host: str, port: int, error: OSError) -> ListenError:
    reason = os.strerror(error.errno) if error.errno else str(error)
    if error.errno == errno.EACCES:
        advice = "choose a port above 1023"
    else:
        advice = "use an address of this machine, such as 127.0.0.1"
    return ListenError(f"cannot listen on {host} port {port}: {reason}; {advice}")
