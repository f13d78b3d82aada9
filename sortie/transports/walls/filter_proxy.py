"""A proxy that is all the network of a run: it lets through what is listed, and tells what it was.

It takes ``CONNECT`` for tunnels, ``http://`` in absolute form, and what is asked of itself below
the routes of credentials.

Rule: whatever an agent sends ends its connection at worst, never the run or the daemon; and no run
takes more of the daemon than its limits say.
"""

from __future__ import annotations

import errno
import ssl
import traceback
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from functools import cache

import h11
import trio
from msgspec import Struct

from sortie.facts.daemon import AdapterCrashed
from sortie.facts.fact import Fact
from sortie.model import RunId
from sortie.model.allowed_hosts import AllowedHost
from sortie.transports.walls.connection_totals import ConnectionTotals
from sortie.transports.walls.destinations import (
    Connect,
    Destinations,
    Lookup,
    Resolver,
    connect_to,
)
from sortie.transports.walls.http_side import AgentSide, HttpSide
from sortie.transports.walls.proxied_credentials import ProxiedCredentials
from sortie.transports.walls.proxied_requests import ProxiedRequests, RequestLimits
from sortie.transports.walls.request_target import RequestRefused
from sortie.transports.walls.upstream_proxy import UpstreamProxy

_NO_ROOM = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.ENOBUFS})
_PAUSE = 0.1  # seconds, in which descriptors may come back


class ProxyRules(Struct, frozen=True, kw_only=True):
    """What a run may reach, and how much of the daemon it may take for that.

    ``setting`` is the key of the list, which refusals name.
    """

    allowed: tuple[AllowedHost, ...]
    setting: str = "sandbox.network"
    max_connections: int = 64
    limits: RequestLimits = RequestLimits()


@asynccontextmanager
async def open_filter_proxy(
    listeners: Sequence[trio.SocketListener],
    rules: ProxyRules,
    tell: Callable[[Fact], None],
    *,
    run_id: RunId,
    credentials: ProxiedCredentials | None = None,
    lookup: Lookup | None = None,
    connect: Connect = connect_to,
    tls: ssl.SSLContext | None = None,
    upstream: UpstreamProxy | None = None,
) -> AsyncIterator[None]:
    """Serve one run on listeners, which are closed at the end, while the block is open.

    The caller enters and leaves in one task. ``tell`` is given facts, also at the end. ``lookup``,
    ``connect`` and ``tls`` are the system's where they are not given. ``upstream`` is the proxy by
    which the machine itself reaches others, if any.
    """
    totals = ConnectionTotals(run_id, tell)
    destinations = Destinations(
        allowed=rules.allowed,
        setting=rules.setting,
        lookup=lookup or Resolver(),
        connect=connect,
        tls=lambda: tls or _system_tls(),
        upstream=upstream,
    )
    requests = ProxiedRequests(
        destinations=destinations,
        credentials=credentials or ProxiedCredentials(),
        totals=totals,
        limits=rules.limits,
    )
    proxy = _FilterProxy(requests, rules.max_connections, tell)
    failed: Exception | None = None
    try:
        async with trio.open_nursery() as nursery:
            for listener in listeners:
                nursery.start_soon(proxy.listen, listener)
            try:
                yield
            except Exception as error:  # passed on as it is, and not in a group of one
                failed = error
            nursery.cancel_scope.cancel()
    finally:
        totals.close()
    if failed is not None:
        raise failed


def proxy_variables(url: str) -> dict[str, str]:
    """Return the variables by which programs find the proxy at ``url``.

    What listens on loopback behind the wall is the run's own and needs no proxy.
    """
    own = "localhost,127.0.0.1"  # old programs take ::1 for a host with a port, and give up
    names = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY")
    variables = {name: url for upper in names for name in (upper, upper.lower())}
    return variables | {"NO_PROXY": own, "no_proxy": own, "NODE_USE_ENV_PROXY": "1"}


@cache
def _system_tls() -> ssl.SSLContext:
    return ssl.create_default_context()


class _FilterProxy:
    """Takes connections, as many at once as a run may have."""

    def __init__(self, requests: ProxiedRequests, most: int, tell: Callable[[Fact], None]) -> None:
        self._requests = requests
        self._most = most
        self._tell = tell
        self._open = 0
        self._crashed = False

    async def listen(self, listener: trio.SocketListener) -> None:
        """Take connections until cancelled, and end all that is open then."""
        async with listener, trio.open_nursery() as nursery:
            while True:
                try:
                    stream = await listener.accept()
                except OSError as error:
                    if error.errno not in _NO_ROOM:
                        raise
                    await trio.sleep(_PAUSE)
                else:
                    nursery.start_soon(self._connection, stream)

    async def _connection(self, stream: trio.SocketStream) -> None:
        self._open += 1
        try:
            async with stream:
                await self._serve_some(HttpSide(stream, h11.SERVER))
        except (trio.BrokenResourceError, trio.ClosedResourceError):
            pass  # the agent has gone
        except Exception:  # the edge: what one connection brings ends that one
            self._crash(traceback.format_exc())
        finally:
            self._open -= 1

    async def _serve_some(self, agent: AgentSide) -> None:
        """Serve so many connections, tell as many others that they are too many, and no more."""
        if self._open <= self._most:
            await self._requests.serve(agent)
        elif self._open <= 2 * self._most:
            message = f"this run has {self._most} connections already, and no more at once"
            await self._requests.turn_away(agent, RequestRefused(503, message))

    def _crash(self, trace: str) -> None:
        if not self._crashed:  # a run that knows how would fill the log
            self._crashed = True
            self._tell(AdapterCrashed(where="proxy", traceback=trace))
