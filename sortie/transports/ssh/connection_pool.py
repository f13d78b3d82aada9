"""All connections to one host: dialled when needed, kept, shared by all commands that run there.

Rule 1: there is at most one dial under way to a host.
Rule 2: a session counts on its connection until both sides have closed it, as it does for sshd.
A task that is cancelled while its session opens leaves nothing behind.
Rule 3: a failed dial fails for all tasks that waited for it; the next task makes a new one.
Rule 4: a shell is kept for questions only while the first connection, which carries it, has room
for another session.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from functools import partial

import trio

from sortie.model import HostError, HostTrouble
from sortie.resources.lease import current_lease
from sortie.transports.remote.protocol import ScriptOutput
from sortie.transports.remote.remote_script import RemoteScript
from sortie.transports.remote.shell_link import ShellLink
from sortie.transports.ssh.asyncio_thread import AsyncioThread, AsyncioThreadGone
from sortie.transports.ssh.channel import SshChannel
from sortie.transports.ssh.connection import HostConnection, SessionsFull
from sortie.transports.ssh.route import find_hops
from sortie.transports.ssh.settings import SshSettings

ROOM_BOUND = 120.0
"""Seconds for which a command waits until the host has room for its session."""

_MOST_CONNECTIONS = 64  # where a host allows one session on each, that many commands run at once
_MOST_DROPS = 3  # connections that may be lost while a session opens, until it is given up
_NO_DIAL_FOR = 5.0  # seconds after a failed dial, where other connections work
_IDLE_FOR = 300.0  # seconds until an idle connection that is not the first is closed
_UNWANTED_FOR = 5.0  # the same, where the host is not wanted
_CLOSE_ALL_BOUND = 5.0  # seconds
_DISMISSAL_BOUND = 1.0  # seconds for idle shells to end


class ConnectionPool(ShellLink):
    """The connections to one host, ``[user@]host[:port]`` or an alias of the ssh_config."""

    def __init__(self, host: str, settings: SshSettings, thread: AsyncioThread) -> None:
        super().__init__(host)
        self._settings = settings
        self._thread = thread
        self._connections: list[HostConnection] = []
        self._dial_lock = trio.Lock()
        self._dials = 0  # that have ended
        self._dial_failure: HostError | None = None  # of the last one
        self._no_dial_before = -math.inf
        self._news = trio.Event()
        self._closed = False
        self._wanted = True

    @property
    def links(self) -> int:
        """How many connections are open."""
        return len(self._connections)

    @property
    def sessions(self) -> int:
        """How many sessions are open, or about to be, on all connections."""
        return sum(connection.sessions for connection in self._connections)

    async def open(self, command: str, text: bytes, parser: ScriptOutput) -> SshChannel:
        """Run a command through the login shell, without a terminal, on a new channel; its stdin
        begins with ``text``.

        The command may have been started more than once, with nothing on its stdin, where
        connections were lost meanwhile. The channel has to be aborted in the end. Raises HostError.
        """
        drops, until = 0, trio.current_time() + ROOM_BOUND
        has_lease = current_lease() is not None
        while True:
            connection = await self._reserve(until)
            freed = partial(self._free, connection)
            channel = SshChannel(self._thread, self.host, text, parser, freed)
            channel.carrier = connection
            opened = False
            try:
                await self._thread.call(connection.open_session, channel, command, has_lease)
                opened = True
                return channel
            except SessionsFull as exc:
                if not connection.carried and connection.sessions == 0:  # it never carries any
                    raise HostError(HostTrouble.UNREACHABLE, str(exc)) from exc
                connection.note_refusal(trio.current_time())
                await self._dismiss_shells(connection)
            except HostError as exc:
                if exc.trouble is not HostTrouble.DROPPED:
                    raise
                self._forget(connection)
                drops += 1
                if drops == _MOST_DROPS:
                    raise
            finally:
                if not opened:
                    channel.abort()

    def _keeps(self, shell: RemoteScript) -> bool:
        first = self._connections[0] if self._connections else None
        return (
            self._wanted
            and first is not None
            and first is shell.channel.carrier
            and first.limit == math.inf
        )

    def set_wanted(self, wanted: bool) -> None:
        """Keep a connection that nothing uses for as long as we live, or for a few seconds only."""
        self._wanted = wanted
        if not wanted:
            self._end_idle_shells()
        self._close_idle()

    async def aclose(self, until: float = math.inf) -> None:
        """Close all connections, within a few seconds and by a time; no more are opened."""
        self._closed = True
        self._end_idle_shells()
        connections, self._connections = self._connections, []
        self._notify()
        until = min(until, trio.current_time() + _CLOSE_ALL_BOUND)
        with trio.move_on_at(until) as limit, suppress(AsyncioThreadGone):
            limit.shield = True
            await self._thread.call(_close, connections)

    @asynccontextmanager
    async def forwarded(self, path: str, here: str) -> AsyncIterator[None]:
        """Have a unix socket listen at a ``path`` there, whose connections come to the one at
        ``here``; see ShellLink. Where the connection that carries it is lost, the block is
        cancelled, and HostError is raised."""
        connection = await self._reserve(trio.current_time() + ROOM_BOUND)
        connection.forwards += 1
        self._free(connection)
        try:
            end = await self._thread.call(connection.forward, path, here)
            with trio.CancelScope() as scope:
                connection.dependents.add(scope.cancel)
                try:
                    yield
                finally:
                    connection.dependents.discard(scope.cancel)
                    self._thread.post(end)
        finally:
            connection.forwards -= 1
            connection.idle_since = trio.current_time()
        if scope.cancelled_caught:
            message = f"the link to host {self.host} was lost, which a socket there needs"
            raise HostError(HostTrouble.DROPPED, message)

    async def _reserve(self, until: float) -> HostConnection:
        """Count one more session on a connection that may have room for it.

        Raises HostError where there is none ``until`` then.
        """
        while True:
            if self._closed:
                raise AsyncioThreadGone
            connection = self._with_room()
            if connection is not None:
                connection.sessions += 1  # before anything is awaited, or others take the room too
                return connection
            now, news = trio.current_time(), self._news
            if len(self._connections) < _MOST_CONNECTIONS and now >= self._no_dial_before:
                await self._add(self._dials)
                continue
            if now >= until:
                raise HostError(
                    HostTrouble.BUSY,
                    f"host {self.host} had no room for another session in {ROOM_BOUND:g} s"
                    f" ({self.sessions} on {self.links} connections); raise MaxSessions in its"
                    " sshd_config, and look for logins that hang",
                )
            again = min((each.limit_until for each in self._connections), default=until)
            if self._no_dial_before > now:
                again = min(again, self._no_dial_before)
            with trio.move_on_at(min(again, until)):
                await news.wait()

    def _free(self, connection: HostConnection) -> None:
        connection.sessions -= 1
        connection.idle_since = trio.current_time()
        self._notify()

    async def _dismiss_shells(self, connection: HostConnection) -> None:
        """End the idle shells, and wait a moment for the sessions that this frees."""
        if self._end_idle_shells():
            with trio.move_on_after(_DISMISSAL_BOUND):
                while connection in self._connections:
                    if connection.has_room(trio.current_time()):
                        return
                    await self._news.wait()

    def _with_room(self) -> HostConnection | None:
        self._close_idle()
        now = trio.current_time()
        return next((each for each in self._connections if each.has_room(now)), None)

    def _close_idle(self) -> None:
        """Close what nothing has used for a while; the first stays where the host is wanted."""
        since = trio.current_time() - (_IDLE_FOR if self._wanted else _UNWANTED_FOR)
        for each in self._connections[1 if self._wanted else 0 :]:
            used = each.sessions or each.forwards
            if each.carried and not used and each.idle_since <= since:
                self._forget(each)
                self._thread.post(each.begin_close)

    async def _add(self, dials_seen: int) -> None:
        """Dial, unless another task has done so while this one waited for its turn."""
        async with self._dial_lock:
            if self._closed or self._with_room() is not None:
                return
            if self._dials == dials_seen:
                self._dial_failure = await self._dial()
                self._dials += 1
                self._notify()
            failure = self._dial_failure
            if failure is None:
                return
            if not self._connections:
                raise HostError(failure.trouble, str(failure)) from failure
            self._no_dial_before = trio.current_time() + _NO_DIAL_FOR

    async def _dial(self) -> HostError | None:
        """Add a connection; return why there is none."""
        connection = HostConnection(self._thread, self.host, self._forget)
        try:
            hops = await find_hops(self.host, self._settings)
            await self._thread.call(connection.dial, hops, self._settings)
        except HostError as exc:
            return exc
        except (OSError, LookupError, ValueError) as exc:  # a name that is none, no descriptor left
            return HostError(
                HostTrouble.UNREACHABLE,
                f"could not reach host {self.host}: {exc} ({type(exc).__name__});"
                " check worker.ssh_hosts, and the limits of this process",
            )
        if not connection.alive:
            return HostError(
                HostTrouble.UNREACHABLE,
                f"host {self.host} hung up right after the login; look at its sshd's log",
            )
        self.generation += not self._connections  # nothing is known from before
        self._connections.append(connection)
        return None

    def _forget(self, connection: HostConnection) -> None:
        """Use a connection no more."""
        self._connections = [each for each in self._connections if each is not connection]
        for cancel in connection.dependents:
            cancel()
        self._notify()

    def _notify(self) -> None:
        """Let the waiting tasks look again."""
        self._news.set()
        self._news = trio.Event()


async def _close(connections: Sequence[HostConnection]) -> None:
    await asyncio.gather(*(connection.close() for connection in connections))
