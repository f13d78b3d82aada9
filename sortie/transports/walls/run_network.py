"""The network of a program behind a wall: a loopback of its own, and the proxy of the daemon on it.

The program gets a network in which nothing but a loopback is. The daemon holds a socket that
listens there, and serves the proxy on it: so no program is needed inside to find the way out, and
one that ignores proxies reaches nothing.
"""

from __future__ import annotations

import socket
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import ExitStack, asynccontextmanager

import trio
from msgspec import Struct
from msgspec.structs import replace

from sortie.facts.fact import Fact
from sortie.model import RunId
from sortie.model.allowed_hosts import AllowedHost
from sortie.model.hiding import repr_without
from sortie.model.model_endpoints import ModelEndpoint
from sortie.transports import COOKIE, PROXY_PORT, Command, Process, Transport
from sortie.transports.walls.filter_proxy import ProxyRules, open_filter_proxy, proxy_variables
from sortie.transports.walls.proxied_credentials import (
    ProxiedCredentials,
    RemoteCredential,
    proxied_credentials,
)
from sortie.transports.walls.upstream_proxy import UpstreamProxy

_URL = f"http://127.0.0.1:{PROXY_PORT}"
_GIT_USERNAME, _GIT_PASSWORD = "SORTIE_GIT_USERNAME", "SORTIE_GIT_PASSWORD"
"""What an agent that may push finds its credential in, where it has it itself."""


class RunNetwork(Struct, frozen=True, kw_only=True):
    """Which hosts programs reach, and whose credentials are put in on the way.

    ``endpoints`` are the services of the agent's model whose keys it does not get, None where it
    has its keys itself; ``repository`` is then the address that its git may push to, None where
    it may not. ``tell`` is given the facts of connections. ``upstream`` is the proxy by which this
    machine reaches others, if any.
    """

    allowed: tuple[AllowedHost, ...]
    tell: Callable[[Fact], None]
    endpoints: tuple[ModelEndpoint, ...] | None = None
    repository: str | None = None
    upstream: UpstreamProxy | None = None

    __repr__ = repr_without("tell")

    def check(self, env: Mapping[str, str]) -> None:
        """Raise CredentialsError where an agent with this environment would have no credential, or
        one that cannot be put in."""
        if self.endpoints is not None:
            proxied_credentials(self.endpoints, env)

    @asynccontextmanager
    async def process(
        self, outside: Transport, command: Command, listener: socket.socket | None = None
    ) -> AsyncIterator[Process]:
        """Start a program whose network this is. Where the transport does not make it, whoever
        calls has led PROXY_PORT there to a ``listener``, which is closed in the end."""
        env = dict(command.env)
        credentials = self._credentials(env)
        env = credentials.agent_env(env | proxy_variables(_URL), _URL)
        with ExitStack() as opened:

            def keep(listener: socket.socket) -> None:
                sockets.append(opened.enter_context(listener))

            sockets: list[socket.socket] = []
            started = replace(command, env=env, listener=keep)
            if listener is not None:
                keep(listener)
                started = replace(started, listener=None)
            async with outside.process(started) as process:
                proxy = open_filter_proxy(
                    [trio.SocketListener(trio.socket.from_stdlib_socket(one)) for one in sockets],
                    ProxyRules(allowed=self.allowed),
                    self.tell,
                    run_id=RunId(env.get(COOKIE, "")),
                    credentials=credentials,
                    upstream=self.upstream,
                )
                async with proxy:
                    yield process

    def _credentials(self, env: dict[str, str]) -> ProxiedCredentials:
        """Return the credentials that an environment holds; a command of verify holds none."""
        if self.endpoints is None:
            return ProxiedCredentials()
        held = [one for one in self.endpoints if any(env.get(name) for name in one.keys)]
        git = None
        username, password = env.pop(_GIT_USERNAME, ""), env.pop(_GIT_PASSWORD, "")
        if self.repository is not None and password:
            git = RemoteCredential(url=self.repository, username=username, password=password)
        return proxied_credentials(held, env, git)
