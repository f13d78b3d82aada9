"""Opens a way to a host through its hops, and sessions on it; all on the asyncio thread.

Rule 1: every hop shows a key that we accept, and is watched: one that does not answer for 45 s
is given up with everything behind it.
Rule 2: a dial ends within 30 s, and leaves nothing behind where it fails or is cancelled.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack, suppress
from functools import partial
from typing import Any

import asyncssh

from sortie.transports.ssh.asyncio_thread import AsyncioThread
from sortie.transports.ssh.channel import SessionsFull
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
from sortie.transports.ssh.receive_buffer import HIGH, ReceiveBuffer
from sortie.transports.ssh.route import Hop
from sortie.transports.ssh.session import Session
from sortie.transports.ssh.settings import SshSettings

# asyncssh gives up after one interval more than it counts: 15 s * (2 + 1) = 45 s.
_KEEPALIVE = 15.0
_KEEPALIVE_COUNT = 2
_CLOSE_BOUND = 2.0  # for a polite good-bye
# These first: a packet costs asyncssh a fraction of what it does with its own first choice.
_CIPHERS = "^aes128-gcm@openssh.com,aes256-gcm@openssh.com"
_AUTHENTICATED = ("-gcm@openssh.com", "-poly1305@openssh.com")
_IGNORE = 2  # SSH_MSG_IGNORE

# OPEN_ADMINISTRATIVELY_PROHIBITED, OPEN_CONNECT_FAILED and OPEN_RESOURCE_SHORTAGE: what servers
# say where a connection carries too many sessions. OpenSSH says the second.
_FULL = (
    asyncssh.OPEN_ADMINISTRATIVELY_PROHIBITED,
    asyncssh.OPEN_CONNECT_FAILED,
    asyncssh.OPEN_RESOURCE_SHORTAGE,
)


class _Client(asyncssh.SSHClient):
    """asyncssh's questions about one connection, and news of its end."""

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


class Link:
    """A way to a host that is logged in at every hop; closes itself where one of them is lost."""

    def __init__(self, thread: AsyncioThread, host: str, when_lost: Callable[[], object]) -> None:
        # These two may be read in any thread; a session may be over before who asked for it knows.
        self.alive = True
        self.carried = False  # a session
        self.reached: Hop | None = None  # the hop that is or was connected to last
        self._thread = thread
        self._host = host
        self._when_lost = when_lost
        self._connections: list[asyncssh.SSHClientConnection] = []
        self._proxy: Proxy | None = None
        self._closing: asyncio.Task[None] | None = None
        thread.closers.add(self.close)

    async def open(self, hops: Sequence[Hop], settings: SshSettings) -> None:
        """Connect to the hops, one through the other. Raises HostError."""
        via: Hop | None = None
        for hop in hops:
            self.reached = hop
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

    async def session(self, command: str, buffer: ReceiveBuffer) -> Session:
        """Run a command; with a dialogue, return with its first news, or a moment after the start.

        Must not be cancelled: asyncssh would leave the session open.

        Raises SessionsFull, and HostError: DROPPED where the link is lost.
        """
        session = Session(self._host, buffer)
        buffer.waker.muted = buffer.dialogue is not None
        try:
            await self._connections[-1].create_session(
                lambda: session,
                command,
                env=None,
                send_env=None,
                request_pty=False,
                encoding=None,
                window=HIGH,
            )
            self.carried = True
        except asyncssh.ChannelOpenError as exc:
            # asyncssh gives its own refusals on a dead connection one of the host's codes.
            if self._is_dead() or exc.reason == "SSH connection closed":
                raise loss(exc, self._host) from exc
            if exc.code in _FULL:
                raise SessionsFull(str(refusal(exc, self._host))) from exc
            raise refusal(exc, self._host) from exc
        except (OSError, asyncssh.Error) as exc:
            raise loss(exc, self._host) from exc
        if buffer.dialogue is not None:
            await session.first_news()
        buffer.waker.muted = False
        return session

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
                async with asyncio.timeout(_CLOSE_BOUND):
                    for connection in reversed(self._connections):
                        connection.close()
                        await connection.wait_closed()
        finally:
            for connection in reversed(self._connections):
                connection.abort()
            if self._proxy is not None:
                await self._proxy.end()

    def _is_dead(self) -> bool:
        return self._closing is not None or self._connections[-1].is_closed()

    def _lost(self) -> None:
        if self._closing is None:
            self.alive = False
            self._closing = asyncio.create_task(self._close())
            self._when_lost()

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
            client_factory=partial(_Client, keys, self._lost),
            connect_timeout=None,
            login_timeout=CONNECT_LIMIT,
            encryption_algs=_CIPHERS,
            keepalive_interval=_KEEPALIVE,
            keepalive_count_max=_KEEPALIVE_COUNT,
        )
        _omit_decoys(connection)
        self._connections.append(connection)


def _omit_decoys(connection: asyncssh.SSHClientConnection) -> None:
    """Have a connection send what it has to say alone.

    asyncssh sends an empty message before each one: half of all packets, and of what they cost.
    That is against an attack on CBC (RFC 4251, 9.3.1), which these ciphers are not.
    """
    if not str(connection.get_extra_info("send_cipher")).endswith(_AUTHENTICATED):
        return
    send = connection.send_packet

    def send_packet(kind: int, *parts: bytes, **options: Any) -> None:
        if kind != _IGNORE:
            send(kind, *parts, **options)

    connection.send_packet = send_packet  # type: ignore[assignment]


async def dial(
    thread: AsyncioThread,
    host: str,
    hops: Sequence[Hop],
    settings: SshSettings,
    when_lost: Callable[[Link], object],
) -> Link:
    """Return a link to the last hop. ``when_lost`` is called in trio when it cannot be used
    any more, unless it was closed before. Raises HostError.
    """
    link = Link(thread, host, lambda: thread.to_trio(when_lost, link))
    opened = False
    try:
        async with asyncio.timeout(CONNECT_LIMIT):
            await link.open(hops, settings)
        opened = True
    except TimeoutError as exc:
        raise dial_trouble(exc, host, link.reached or hops[0]) from exc
    finally:
        if not opened:
            await link.close()
    return link
