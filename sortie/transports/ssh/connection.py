"""One connection to a host through its hops, logged in at every one, and the sessions on it.

All methods run on the asyncio thread, but for what says otherwise.

Rule 1: every hop shows a key that we accept, and is watched: one that does not answer for 45 s
is given up with everything behind it.
Rule 2: a dial ends within 30 s, and leaves nothing behind where it fails or is cancelled.
Rule 3: what a daemon with a lease has sent, and the host has not taken, is given up after some
seconds, and with the connection: it never arrives when another daemon leads.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, suppress
from functools import partial

import asyncssh
import trio

from sortie.model import TransportError
from sortie.resources.untaken import discard_at_close, give_up_untaken
from sortie.scheduler.lease_times import LINK_UNTAKEN_LIMIT
from sortie.transports.remote.channel import PAUSE_ABOVE
from sortie.transports.ssh.asyncio_thread import AsyncioThread
from sortie.transports.ssh.channel import SshChannel
from sortie.transports.ssh.errors import (
    CONNECT_LIMIT,
    dial_trouble,
    login_trouble,
    loss,
    refusal,
)
from sortie.transports.ssh.identities import Identities, collect
from sortie.transports.ssh.known_hosts import HostKeys
from sortie.transports.ssh.proxies import Proxy
from sortie.transports.ssh.route import Hop
from sortie.transports.ssh.settings import SshSettings

# asyncssh gives up after one interval more than it counts: 15 s * (2 + 1) = 45 s.
_KEEPALIVE = 15.0
_KEEPALIVE_COUNT = 2
_GOODBYE_BOUND = 2.0  # seconds for a polite end of a connection
# These first: a packet costs asyncssh a fraction of what it does with its own first choice.
_CIPHERS = "^aes128-gcm@openssh.com,aes256-gcm@openssh.com"

# Seconds for which a host's refusal of a session is believed. sshd frees a session a little after
# we saw it close, so what was learned must not stay: the limit would drift towards no session.
_FULL_FOR = 5.0
_FULL_WHEN_EMPTY_FOR = 0.2

# OPEN_ADMINISTRATIVELY_PROHIBITED, OPEN_CONNECT_FAILED and OPEN_RESOURCE_SHORTAGE: what servers
# say where a connection carries too many sessions. OpenSSH says the second.
_FULL = (
    asyncssh.OPEN_ADMINISTRATIVELY_PROHIBITED,
    asyncssh.OPEN_CONNECT_FAILED,
    asyncssh.OPEN_RESOURCE_SHORTAGE,
)


class SessionsFull(TransportError):
    """A connection carries as many sessions as the host allows on one; text as of HostError."""


class _HostKeyClient(asyncssh.SSHClient):
    """Decides on the host key of one connection for asyncssh, and hears of the connection's end."""

    def __init__(self, keys: HostKeys, when_lost: Callable[[], object]) -> None:
        self._keys = keys
        self._when_lost = when_lost

    def validate_host_public_key(
        self,
        host: str,  # noqa: ARG002
        addr: str,  # noqa: ARG002
        port: int,  # noqa: ARG002
        key: asyncssh.SSHKey,
    ) -> bool:
        """Decide on a key that is not revoked."""
        return self._keys.accepts(key)

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002
        """Pass the news on."""
        self._when_lost()


class HostConnection:
    """A way to a host that is logged in at every hop; closes itself where one of them is lost.

    It is made in trio, where ``when_lost`` is called once it cannot be used any more, unless it was
    closed before.
    """

    def __init__(
        self, thread: AsyncioThread, host: str, when_lost: Callable[[HostConnection], object]
    ) -> None:
        # May be read in any thread:
        self.alive = True
        self.carried = False  # a session
        # The trio thread's:
        self.sessions = 0  # that are open, or about to be
        self.forwards = 0  # of sockets
        self.dependents: set[Callable[[], object]] = set()  # called where it is lost
        self.idle_since = trio.current_time()
        self.limit = math.inf  # of sessions, as the host has let us know
        self.limit_until = math.inf
        # The asyncio thread's:
        self._thread = thread
        self._when_lost = when_lost
        self._reached: Hop | None = None  # the hop that is or was connected to last
        self._host = host
        self._connections: list[asyncssh.SSHClientConnection] = []
        self._proxy: Proxy | None = None
        self._is_bounded = False
        self._closing: asyncio.Task[None] | None = None

    def has_room(self, now: float) -> bool:
        """Tell whether it may carry another session. Called in trio."""
        if now >= self.limit_until:
            self.limit = self.limit_until = math.inf
        return self.alive and self.sessions < self.limit

    def note_refusal(self, now: float) -> None:
        """Believe for a while that it carries no more than it does now. Called in trio."""
        self.limit = self.sessions
        self.limit_until = now + (_FULL_FOR if self.sessions else _FULL_WHEN_EMPTY_FOR)

    async def dial(self, hops: Sequence[Hop], settings: SshSettings) -> None:
        """Connect to the hops, one through the other. Raises HostError."""
        self._thread.closers.add(self.close)
        opened = False
        try:
            async with asyncio.timeout(CONNECT_LIMIT):
                await self._dial(hops, settings)
            opened = True
        except TimeoutError as exc:
            raise dial_trouble(exc, self._host, self._reached or hops[0]) from exc
        finally:
            if not opened:
                await self.close()

    async def _dial(self, hops: Sequence[Hop], settings: SshSettings) -> None:
        via: Hop | None = None
        for hop in hops:
            self._reached = hop
            identities = Identities()
            try:
                keys = HostKeys(hop, settings.strict, self._host)
                async with AsyncExitStack() as stack:
                    identities = await collect(hop, stack)
                    await self._connect(hop, keys, identities, settings)
            except asyncssh.PermissionDenied as exc:
                raise login_trouble(self._host, hop, identities) from exc
            except asyncssh.HostKeyNotVerifiable as exc:
                raise keys.unverified(exc.reason) from exc
            except (OSError, asyncssh.Error) as exc:
                said = self._proxy.said if self._proxy else ""
                if "authentication failures" in str(exc):  # more keys than the host lets us try
                    raise login_trouble(self._host, hop, identities) from exc
                raise dial_trouble(exc, self._host, hop, via=via, said=said) from exc
            via = hop

    def open_session(self, channel: SshChannel, command: str, has_lease: bool) -> Awaitable[None]:
        """Run a command on a channel; to be awaited. Cancelled, it returns at once, and the session
        is opened all the same: asyncssh would lose it. It is closed where the channel is aborted.

        Where the caller ``has_lease``, what this connection carries is bounded from now on. Raises
        SessionsFull, and HostError: DROPPED where the connection is lost.
        """
        if has_lease:
            self._bound()
        opening = asyncio.create_task(self._open_session(channel, command))
        opening.add_done_callback(channel.opening_done)
        return asyncio.shield(opening)

    def _bound(self) -> None:
        """See rule 3. The kernel has no connection of ours where a program leads to the host."""
        made = self._connections[0].get_extra_info("socket")
        if not self._is_bounded and made is not None and self.alive:
            give_up_untaken(made, LINK_UNTAKEN_LIMIT)
            discard_at_close(made)
            self._is_bounded = True

    async def _open_session(self, channel: SshChannel, command: str) -> None:
        try:
            await self._connections[-1].create_session(
                lambda: channel,
                command,
                env=None,
                send_env=None,
                request_pty=False,
                encoding=None,
                window=PAUSE_ABOVE,
            )
            self.carried = True
        except asyncssh.ChannelOpenError as exc:
            # asyncssh gives its own refusals on a dead connection one of the host's codes.
            is_dead = self._closing is not None or self._connections[-1].is_closed()
            if is_dead or exc.reason == "SSH connection closed":
                raise loss(exc, self._host) from exc
            if exc.code in _FULL:
                raise SessionsFull(str(refusal(exc, self._host))) from exc
            raise refusal(exc, self._host) from exc
        except (OSError, asyncssh.Error) as exc:
            raise loss(exc, self._host) from exc

    async def forward(self, path: str, here: str) -> Callable[[], object]:
        """Have a unix socket listen at a ``path`` on the host, whose connections come to the one at
        ``here``; return what ends that. Raises TransportError."""
        try:
            listener = await self._connections[-1].forward_remote_path(path, here)
        except asyncssh.ChannelListenError as exc:
            raise TransportError(
                f"host {self._host} lets no unix socket be forwarded to this machine, which"
                " sandbox.network with a list of hosts needs; set AllowStreamLocalForwarding in"
                " its sshd_config, and look for 'restrict' before the key in authorized_keys there"
            ) from exc
        except (OSError, asyncssh.Error) as exc:
            raise loss(exc, self._host) from exc
        return listener.close

    async def close(self) -> None:
        """Say good-bye, and then leave in any case, within a few seconds; may be repeated."""
        await asyncio.shield(self.begin_close())

    def begin_close(self) -> asyncio.Task[None]:
        """Begin to close."""
        if self._closing is None:
            self._closing = asyncio.create_task(self._close())
        return self._closing

    async def _close(self) -> None:
        self.alive = False
        self._thread.closers.discard(self.close)
        try:
            with suppress(TimeoutError):
                async with asyncio.timeout(_GOODBYE_BOUND):
                    for connection in reversed(self._connections):
                        connection.close()
                        await connection.wait_closed()
        finally:
            for connection in reversed(self._connections):
                connection.abort()
            if self._proxy is not None:
                await self._proxy.end()

    def _lost(self) -> None:
        if self._closing is None:
            self.alive = False
            self._closing = asyncio.create_task(self._close())
            self._thread.to_trio(self._when_lost, self)

    async def _connect(
        self, hop: Hop, keys: HostKeys, identities: Identities, settings: SshSettings
    ) -> None:
        through = self._connections[-1] if self._connections else None
        sock = None
        if hop.proxy_command is not None:
            self._proxy, sock = await Proxy.start(hop.proxy_command, settings.environ)
        connection = await asyncssh.connect(
            hop.host,
            hop.port,
            sock=sock,
            tunnel=through,
            config=None,
            username=hop.user,
            client_keys=identities.pairs or None,
            agent_path=None,
            preferred_auth="publickey",
            known_hosts=([], keys.authorities, keys.revoked),
            server_host_key_algs=keys.algorithms,
            client_factory=partial(_HostKeyClient, keys, self._lost),
            connect_timeout=None,
            login_timeout=CONNECT_LIMIT,
            encryption_algs=_CIPHERS,
            keepalive_interval=_KEEPALIVE,
            keepalive_count_max=_KEEPALIVE_COUNT,
        )
        self._connections.append(connection)
