"""What the proxy does with a connection of an agent: read one request, judge it, answer it.

Rule 1: nothing is looked up, connected or sent before the target has been judged.
Rule 2: one connection is one tunnel or one request.
Rule 3: each connection is counted once, as allowed or as refused.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import assert_never

import h11
import trio
from msgspec import Struct

from sortie.model.addresses import is_loopback
from sortie.transports.walls.connection_totals import ConnectionTotals
from sortie.transports.walls.credential_routes import CredentialRoute
from sortie.transports.walls.destinations import Destinations, NotAllowed, Unreachable
from sortie.transports.walls.forwarding import AnswerFilter, Unfiltered, forward, request_for
from sortie.transports.walls.http_side import AgentSide, HttpSide, ServerSide
from sortie.transports.walls.proxied_credentials import ProxiedCredentials
from sortie.transports.walls.relay import CHUNK, relay
from sortie.transports.walls.request_target import (
    RequestRefused,
    RequestTarget,
    RouteTarget,
    Target,
    TunnelTarget,
    route_target,
    target_of,
)

LINGER, LINGER_BYTES = 2.0, 1024 * 1024
"""Seconds, and bytes, for which an agent is listened to that has its answer: a connection that is
closed with something unread takes the answer back."""

_LONGEST_REASON = 300


class RequestLimits(Struct, frozen=True, kw_only=True):
    """Seconds for the arrival of a request's head, and for a connection on which nothing moves."""

    head: float = 15.0
    idle: float = 900.0


class ProxiedRequests(Struct, frozen=True, kw_only=True):
    """Serves the connections of one run."""

    destinations: Destinations
    credentials: ProxiedCredentials
    totals: ConnectionTotals
    limits: RequestLimits

    async def serve(self, agent: AgentSide) -> None:
        """Answer what comes. Raises trio.BrokenResourceError where the agent goes away."""
        try:
            request = await self._head(agent)
            if request is not None:
                await self._answer(agent, request, self._target(request))
            await _linger(agent)
        except RequestRefused as error:
            await self.turn_away(agent, error)

    async def turn_away(self, agent: AgentSide, error: RequestRefused) -> None:
        """Answer what is no request that can be judged, or one too many."""
        self.totals.refused("", 0, error.message)
        await _say(agent, error.status, error.message)
        await _linger(agent)

    async def _head(self, agent: AgentSide) -> h11.Request | None:
        """Return a request's head, None where the agent says nothing."""
        with trio.move_on_after(self.limits.head):
            try:
                event = await agent.next_event()
            except h11.RemoteProtocolError as error:
                status = error.error_status_hint
                what = "the head is too large" if status == 431 else "this is no request of HTTP"
                raise RequestRefused(status, what) from error
            return event if isinstance(event, h11.Request) else None
        raise RequestRefused(408, f"no whole request came in {self.limits.head:g} seconds")

    def _target(self, request: h11.Request) -> Target:
        target = target_of(request)
        if isinstance(target, RequestTarget) and is_loopback(target.host):
            # A program that does not know NO_PROXY asks the proxy for what is at the proxy.
            own = route_target(target.path)
            return own if own.name in self.credentials.routes else target
        return target

    async def _answer(self, agent: AgentSide, request: h11.Request, target: Target) -> None:
        match target:
            case TunnelTarget():
                host, port = target.host, target.port
                await self._count(agent, host, port, lambda: self._tunnel(agent, target))
            case RequestTarget():
                host, port = target.host, target.port
                await self._count(agent, host, port, lambda: self._pass(agent, request, target))
            case RouteTarget():
                route = self.credentials.routes.get(target.name)
                if route is None:
                    raise RequestRefused(404, "this is a proxy, which has no pages of its own")
                await self._count(
                    agent,
                    route.host,
                    route.port,
                    lambda: self._exchange(agent, request, route, target.path),
                )
            case _:
                assert_never(target)

    async def _count(
        self, agent: AgentSide, host: str, port: int, work: Callable[[], Awaitable[None]]
    ) -> None:
        """Answer a request for a host, and count it."""
        refused, error = None, "it broke off"
        try:
            await work()
            error = ""
        except NotAllowed as told:
            refused = str(told)
            await _say(agent, 403, refused)
        except Unreachable as told:
            error = str(told)
            await _say(agent, 504 if told.timed_out else 502, error)
        except trio.Cancelled:
            error = ""
            raise
        finally:
            if refused is not None:
                self.totals.refused(host, port, refused)
            else:
                traffic = agent.traffic
                self.totals.ended(
                    host, port, sent=traffic.sent, received=traffic.received, error=error or None
                )

    async def _tunnel(self, agent: AgentSide, target: TunnelTarget) -> None:
        server = await self.destinations.reach(target.host, target.port)
        async with server:
            await agent.send(h11.Response(status_code=200, reason=b"Connected", headers=[]))
            await relay(
                agent.stream,
                server,
                agent.traffic,
                first=agent.left_over,
                idle_limit=self.limits.idle,
            )

    async def _pass(self, agent: AgentSide, request: h11.Request, target: RequestTarget) -> None:
        """Pass a request over plain HTTP on, to a host that is listed."""
        self.destinations.check(target.host, target.port)
        self._refuse_placeholders(request, None)
        server = await self.destinations.reach(target.host, target.port)
        passed = request_for(request, target.authority, target.path, request.headers)
        await self._forward(agent, server, passed, Unfiltered())

    async def _exchange(
        self, agent: AgentSide, request: h11.Request, route: CredentialRoute, path: str
    ) -> None:
        """Pass a request on with the credential; for a path that it is not for, as any other."""
        if route.is_for(path):
            self._refuse_placeholders(request, route)
            stream = await self.destinations.reach_anywhere(route.host, route.port)
        else:
            self.destinations.check(route.host, route.port)
            self._refuse_placeholders(request, None)
            stream = await self.destinations.reach(route.host, route.port)
        headers = route.exchange(request.headers)
        server = await self.destinations.secure(stream, route.host) if route.tls else stream
        passed = request_for(request, route.authority, path, headers)
        await self._forward(agent, server, passed, route.answer(request.headers, headers))

    async def _forward(
        self, agent: AgentSide, stream: trio.abc.Stream, request: h11.Request, changed: AnswerFilter
    ) -> None:
        async with stream:
            server: ServerSide = HttpSide(stream, h11.CLIENT)
            await forward(agent, server, request, changed, idle_limit=self.limits.idle)

    def _refuse_placeholders(self, request: h11.Request, route: CredentialRoute | None) -> None:
        if self.credentials.strange_placeholder(list(request.headers), route):
            raise NotAllowed(
                "the request holds the placeholder of a credential that is not for this host, or"
                " not for this path: the proxy puts it in for its own server only"
            )


async def _say(agent: AgentSide, status: int, message: str) -> None:
    """Answer with one sentence, also where the status stands: of a refused tunnel most programs
    show no more than that."""
    if not agent.can_answer:
        return
    text = message.encode("ascii", "replace")
    headers = [
        (b"Content-Type", b"text/plain; charset=utf-8"),
        (b"Content-Length", str(len(text) + 1).encode()),
        (b"Connection", b"close"),
    ]
    await agent.send(
        h11.Response(status_code=status, reason=text[:_LONGEST_REASON], headers=headers)
    )
    await agent.send(h11.Data(data=text + b"\n"))
    await agent.send(h11.EndOfMessage())


async def _linger(agent: AgentSide) -> None:
    """End our half, and wait until the agent has ended its own."""
    with trio.move_on_after(LINGER):
        await agent.stream.send_eof()
        unread = 0
        while unread < LINGER_BYTES and (chunk := await agent.stream.receive_some(CHUNK)):
            unread += len(chunk)
