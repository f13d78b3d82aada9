"""Connections to hosts that are allowed: each name is looked up once, and its addresses checked.

Rule 1: a name is looked up only where the list covers it, so that nothing is told to name servers
by asking for names.
Rule 2: the connection goes to an address that was checked, never to a name; but where the machine
reaches others by a proxy alone, that one is told the name, and looks it up.
"""

from __future__ import annotations

import socket
import ssl
from collections.abc import Awaitable, Callable, Collection, Sequence
from contextlib import AsyncExitStack, ExitStack
from ipaddress import IPv4Address, IPv6Address, ip_address

import trio
from msgspec import Struct

from sortie.model.addresses import is_loopback
from sortie.model.allowed_hosts import AllowedHost, Network, covering, network_of
from sortie.resources.shortages import Shortage
from sortie.resources.threads import run_in_thread
from sortie.transports.walls.request_target import authority
from sortie.transports.walls.upstream_proxy import TunnelRefused, UpstreamProxy

CONNECT_TIMEOUT = 15.0
"""Seconds for each address, and for a handshake of TLS."""

MOST_ADDRESSES = 4
"""Addresses of a name that are tried."""

Address = IPv4Address | IPv6Address
Lookup = Callable[[str], Awaitable[Sequence[Address]]]
"""Returns the addresses of a name. Raises OSError where it has none."""

Connect = Callable[[Address, int], Awaitable[trio.SocketStream]]


class NotAllowed(Exception):
    """A host may not be reached; the text says which setting would allow it."""


class Unreachable(Exception):
    """A host may be reached and cannot be."""

    def __init__(self, message: str, *, timed_out: bool = False) -> None:
        super().__init__(message)
        self.timed_out = timed_out


class Resolver:
    """Looks names up with the functions of the system, a few at a time.

    Threads that look up names that nobody answers for are not taken from the rest of the daemon.
    """

    def __init__(self, threads: int = 8) -> None:
        self._limiter = trio.CapacityLimiter(threads)

    async def __call__(self, host: str) -> Sequence[Address]:
        found = await run_in_thread(
            _addresses_of, host, limiter=self._limiter, abandon_on_cancel=True
        )
        return list(dict.fromkeys(found))


def _addresses_of(host: str) -> list[Address]:
    found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    return [ip_address(str(place[0]).partition("%")[0]) for *_, place in found]


async def connect_to(address: Address, port: int) -> trio.SocketStream:
    """Open a connection. Raises OSError."""
    family = socket.AF_INET if address.version == 4 else socket.AF_INET6
    with ExitStack() as undo:
        sock = undo.enter_context(trio.socket.socket(family, socket.SOCK_STREAM))
        await sock.connect((str(address), port))
        undo.pop_all()
    return trio.SocketStream(sock)


class Destinations(Struct, frozen=True, kw_only=True):
    """Decides which hosts may be reached, and reaches them.

    ``setting`` is the key of the list, for refusals. ``tls`` checks the certificates of servers.
    ``upstream`` is the proxy by which the machine itself reaches others, if any.
    """

    allowed: Collection[AllowedHost]
    setting: str
    lookup: Lookup
    connect: Connect
    tls: Callable[[], ssl.SSLContext]
    upstream: UpstreamProxy | None = None

    def check(self, host: str, port: int) -> list[AllowedHost]:
        """Return the entries that cover a host. Raises NotAllowed where there is none."""
        entries = covering(self.allowed, host, port)
        if not entries:
            raise NotAllowed(
                f"{_shown(host, port)} is not reachable from this run:"
                f" {self.setting} does not list {_entry(host, port)}"
            )
        return entries

    async def reach(self, host: str, port: int) -> trio.SocketStream:
        """Connect to a host that the list allows. Raises NotAllowed and Unreachable."""
        entries = self.check(host, port)
        if (upstream := self._upstream_for(host)) and not _is_address(host):
            return await self._through(upstream, host, port)
        found = await self._addresses(host)
        fit = [one for one in found if any(entry.permits(host, one) for entry in entries)]
        if not fit:
            raise NotAllowed(_address_refused(host, port, found[0], self.setting))
        if upstream is not None:
            return await self._through(upstream, host, port)
        return await self._first_of(host, port, fit)

    async def reach_anywhere(self, host: str, port: int) -> trio.SocketStream:
        """Connect to a host that the operator has named as a server, wherever it is.

        Raises Unreachable.
        """
        if (upstream := self._upstream_for(host)) is not None:
            return await self._through(upstream, host, port)
        return await self._first_of(host, port, await self._addresses(host))

    def _upstream_for(self, host: str) -> UpstreamProxy | None:
        """Return the proxy by which a host is reached; this machine never is."""
        if self.upstream is None or is_loopback(host) or not self.upstream.is_for(host):
            return None
        return self.upstream

    async def _through(self, proxy: UpstreamProxy, host: str, port: int) -> trio.SocketStream:
        """Return a tunnel of a proxy to a host."""
        if not proxy.host:
            raise Unreachable(f"{proxy.variable} of the daemon is no address as http://proxy:3128")
        stream = await self._first_of(proxy.host, proxy.port, await self._addresses(proxy.host))
        async with AsyncExitStack() as undo:
            undo.push_async_callback(trio.aclose_forcefully, stream)
            try:
                with trio.fail_after(CONNECT_TIMEOUT):
                    await proxy.open_tunnel(stream, host, port)
            except trio.TooSlowError:
                late = f"the proxy of {proxy.variable} opens no tunnel to {_shown(host, port)}"
                raise Unreachable(late, timed_out=True) from None
            except TunnelRefused as error:
                raise Unreachable(str(error)) from error
            undo.pop_all()
        return stream

    async def secure(
        self, stream: trio.SocketStream, host: str
    ) -> trio.SSLStream[trio.SocketStream]:
        """Speak TLS with a server that has the host's certificate.

        Raises Unreachable where it has not; then the stream is closed.
        """
        async with AsyncExitStack() as undo:
            undo.push_async_callback(trio.aclose_forcefully, stream)
            secure = await self._over_tls(stream, host)
            undo.pop_all()
        return secure

    async def _over_tls(
        self, stream: trio.SocketStream, host: str
    ) -> trio.SSLStream[trio.SocketStream]:
        secure = trio.SSLStream(stream, self.tls(), server_hostname=host, https_compatible=True)
        try:
            with trio.fail_after(CONNECT_TIMEOUT):
                await secure.do_handshake()
        except trio.TooSlowError:
            raise Unreachable(f"{host} does not shake hands over TLS", timed_out=True) from None
        except trio.BrokenResourceError as error:
            raise Unreachable(f"{host} cannot be trusted over TLS: {_tls_reason(error)}") from error
        return secure

    async def _addresses(self, host: str) -> Sequence[Address]:
        if _is_address(host):
            return [ip_address(host)]
        try:
            with trio.fail_after(CONNECT_TIMEOUT):
                found = await self.lookup(host)
        except trio.TooSlowError:
            raise Unreachable(f"the name {host} is not answered for", timed_out=True) from None
        except Shortage as error:
            raise Unreachable(f"the name {host} cannot be looked up now: {error}") from error
        except (OSError, UnicodeError):
            found = ()
        if not found:
            raise Unreachable(f"the name {host} is not known")
        return found[:64]

    async def _first_of(
        self, host: str, port: int, addresses: Sequence[Address]
    ) -> trio.SocketStream:
        last: OSError | None = None
        for address in addresses[:MOST_ADDRESSES]:
            with trio.move_on_after(CONNECT_TIMEOUT):
                try:
                    return await self.connect(address, port)
                except OSError as error:
                    last = error
        if last is None:
            raise Unreachable(f"{_shown(host, port)} does not answer", timed_out=True)
        reason = last.strerror or str(last)
        raise Unreachable(f"{_shown(host, port)} cannot be reached: {reason}") from last


def _tls_reason(error: trio.BrokenResourceError) -> str:
    cause = error.__cause__
    if isinstance(cause, ssl.SSLCertVerificationError):
        return cause.verify_message
    if isinstance(cause, ssl.SSLError):
        return cause.reason or str(cause)
    return "the connection broke off"


def _address_refused(host: str, port: int, address: Address, setting: str) -> str:
    told = f"{_shown(host, port)} is not reachable from this run: it is at {address},"
    if network_of(address) is Network.PRIVATE:
        return f"{told} a private address, which {setting} allows by {_shown(host, port)} alone"
    return f"{told} which {setting} allows by {_shown(str(address), port)} alone"


def _is_address(host: str) -> bool:
    try:
        ip_address(host)
    except ValueError:
        return False
    return True


def _shown(host: str, port: int) -> str:
    return authority(host, port, 0)


def _entry(host: str, port: int) -> str:
    return host if port in (80, 443) else _shown(host, port)
