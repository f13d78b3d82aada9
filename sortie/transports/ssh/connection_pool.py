"""All connections to one host: dialled when needed, kept, shared by those who run commands there.

Rule 1: there is at most one dial under way to a host.
Rule 2: a session counts on its connection until both sides have closed it, as it does for sshd;
whoever is cancelled while it opens leaves nothing behind.
Rule 3: a failed dial is told to all who waited for it; the next who asks makes a new one.
Rule 4: a shell is kept for questions only while the first connection, which carries it, has room
for another session.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from functools import partial
from typing import TYPE_CHECKING

import outcome
import trio

from sortie.model import HostError, HostTrouble
from sortie.transports.ssh.asyncio_thread import AsyncioThread, AsyncioThreadGone
from sortie.transports.ssh.channel import Channel, SessionsFull
from sortie.transports.ssh.idle_shells import IdleShells
from sortie.transports.ssh.login_limit import LoginLimit
from sortie.transports.ssh.protocol import Dialogue
from sortie.transports.ssh.receive_buffer import ReceiveBuffer
from sortie.transports.ssh.route import Hop, find_hops
from sortie.transports.ssh.settings import SshSettings
from sortie.transports.ssh.shared_link import SessionSlot, SharedLink

if TYPE_CHECKING:  # they import asyncssh, which only the asyncio thread needs
    from sortie.transports.ssh.conversation import Conversation
    from sortie.transports.ssh.link import Link
    from sortie.transports.ssh.session import Session

_MOST_LINKS = 64  # where a host allows one session on each, that many commands run at once
_DROPS = 3  # links that may be lost under one and the same opening before it is given up
_NO_DIAL_FOR = 5.0  # after a failed dial, where other connections work
_IDLE_FOR = 300.0  # then a connection that is not the first is closed
_UNWANTED_FOR = 5.0  # the same, where the host is not wanted
_CLOSE_BOUND = 5.0
_DISMISSAL_BOUND = 1.0  # for shells that were kept to end
ROOM_BOUND = 120.0
"""Seconds for which a command waits until the host has room for its session."""


class ConnectionPool:
    """The connections to one host, ``[user@]host[:port]`` or an alias of the ssh_config."""

    def __init__(self, host: str, settings: SshSettings, thread: AsyncioThread) -> None:
        self._host = host
        self._settings = settings
        self._thread = thread
        self._used: list[SharedLink] = []
        self._dial_lock = trio.Lock()
        self._dials = 0  # that have ended
        self.first_links = 0
        self._failure: HostError | None = None  # of the last one
        self._no_dial_before = -math.inf
        self._news = trio.Event()
        self._closed = False
        self._wanted = True
        self._idle_shells = IdleShells()
        self.login_limit = LoginLimit(host)

    @property
    def links(self) -> int:
        """How many connections are open."""
        return len(self._used)

    @property
    def sessions(self) -> int:
        """How many sessions are open, or about to be, on all connections."""
        return sum(used.count for used in self._used)

    async def open(self, command: str, dialogue: Dialogue | None = None) -> Channel:
        """Run a command through the login shell, without a terminal, on a new channel.

        The command may have been started more than once, with nothing on its stdin, where links
        were lost meanwhile. The channel has to be aborted in the end. Where the dialogue has
        said GO already, a cancelled caller gets the channel all the same. Raises HostError.
        """
        drops, until = 0, trio.current_time() + ROOM_BOUND
        while True:
            used = await self._reserve(until)
            slot = SessionSlot(used, self._tell)
            buffer = ReceiveBuffer(self._thread, slot.free, dialogue)
            late = partial(_abandon, self._thread, slot)
            try:
                session = await self._thread.call(
                    used.link.session,
                    command,
                    buffer,
                    late=late,
                    leave=dialogue.withdraw if dialogue else None,
                )
            except SessionsFull as exc:
                slot.free()
                if not used.link.carried and used.count == 0:  # it never carries any
                    raise HostError(HostTrouble.UNREACHABLE, str(exc)) from exc
                used.refused()
                await self._dismiss_shells(used)
            except HostError as exc:
                slot.free()
                if exc.trouble is not HostTrouble.DROPPED:
                    raise
                self._forget(used.link)
                drops += 1
                if drops == _DROPS:
                    raise
            except AsyncioThreadGone as exc:
                slot.free()
                if dialogue is not None and not dialogue.withdraw():
                    raise HostError(HostTrouble.DROPPED, f"{exc}, and a program may run") from exc
                raise
            else:
                channel = Channel(self._thread, buffer, session)
                channel.carrier = used
                return channel

    @asynccontextmanager
    async def channel(
        self, command: str, dialogue: Dialogue | None = None
    ) -> AsyncIterator[Channel]:
        """Do as ``open``, and abort the channel when the block is left, unless it is kept."""
        channel = await self.open(command, dialogue)
        try:
            yield channel
        finally:
            if not channel.kept:
                channel.abort()

    def take_shell(self) -> tuple[Conversation, float] | None:
        """Return a shell that was kept, if there is one, and the time since when it was."""
        return self._idle_shells.take()

    def keep_shell(self, shell: Conversation) -> bool:
        """Keep a shell for the next question, where there is room for it; return whether it is."""
        first = self._used[0] if self._used else None
        return (
            self._wanted
            and first is not None
            and first is shell.channel.carrier
            and first.full == math.inf
            and self._idle_shells.put(shell)
        )

    def set_wanted(self, wanted: bool) -> None:
        """Keep a connection that nobody uses for as long as we live, or for a few seconds only."""
        self._wanted = wanted
        if not wanted:
            self._idle_shells.dismiss()
        self._close_idle()

    async def aclose(self, until: float = math.inf) -> None:
        """Close all connections, within a few seconds and by a time; no more are opened."""
        self._closed = True
        self._idle_shells.dismiss()
        self._tell()
        links = [used.link for used in self._used]
        self._used.clear()
        until = min(until, trio.current_time() + _CLOSE_BOUND)
        with trio.move_on_at(until) as limit, suppress(AsyncioThreadGone):
            limit.shield = True
            await self._thread.call(_close, links)

    async def _reserve(self, until: float) -> SharedLink:
        """Count one more session on a connection that may have room for it.

        Raises HostError where there is none ``until`` then.
        """
        while True:
            if self._closed:
                raise AsyncioThreadGone
            used = self._with_room()
            if used is not None:
                used.count += 1  # before anything is awaited, or others take the room too
                return used
            if len(self._used) < _MOST_LINKS and trio.current_time() >= self._no_dial_before:
                await self._add(self._dials)
                continue
            now, news = trio.current_time(), self._news
            if now >= until:
                raise HostError(
                    HostTrouble.BUSY,
                    f"host {self._host} had no room for another session in {ROOM_BOUND:g} s"
                    f" ({self.sessions} on {self.links} connections); raise MaxSessions in its"
                    " sshd_config, and look for logins that hang",
                )
            again = min([u.full_until for u in self._used], default=until)
            if self._no_dial_before > now:
                again = min(again, self._no_dial_before)
            with trio.move_on_at(min(again, until)):
                await news.wait()

    async def _dismiss_shells(self, used: SharedLink) -> None:
        """Give up the shells that are kept, and wait a moment for the sessions that this frees."""
        if self._idle_shells.dismiss():
            with trio.move_on_after(_DISMISSAL_BOUND):
                while used in self._used and not used.has_room(trio.current_time()):
                    await self._news.wait()

    def _with_room(self) -> SharedLink | None:
        now = trio.current_time()
        self._close_idle()
        return next((used for used in self._used if used.has_room(now) and used.link.alive), None)

    def _close_idle(self) -> None:
        """Close what nobody has used for a while; the first stays where the host is wanted."""
        since = trio.current_time() - (_IDLE_FOR if self._wanted else _UNWANTED_FOR)
        for used in self._used[1 if self._wanted else 0 :]:
            if used.link.carried and used.count == 0 and used.idle_since <= since:
                self._forget(used.link)
                self._thread.post(used.link.begin_close)

    async def _add(self, dials_seen: int) -> None:
        """Dial, unless somebody else did while we waited for our turn."""
        async with self._dial_lock:
            if self._closed or self._with_room() is not None:
                return
            if self._dials == dials_seen:
                await self._dial()
            if self._failure is None:
                return
            if not self._used:
                raise HostError(self._failure.trouble, str(self._failure)) from self._failure
            self._no_dial_before = trio.current_time() + _NO_DIAL_FOR

    async def _dial(self) -> None:
        try:
            hops = await find_hops(self._host, self._settings)
            link = await self._thread.call(
                _dial, self._thread, self._host, hops, self._settings, self._forget
            )
        except HostError as exc:
            self._failure = exc
        except (OSError, LookupError, ValueError) as exc:  # a name that is none, no descriptor left
            self._failure = HostError(
                HostTrouble.UNREACHABLE,
                f"could not reach host {self._host}: {exc} ({type(exc).__name__});"
                " check worker.ssh_hosts, and the limits of this process",
            )
        else:
            self._failure = None
            if not link.alive:
                self._failure = HostError(
                    HostTrouble.UNREACHABLE,
                    f"host {self._host} hung up right after the login; look at its sshd's log",
                )
            else:
                self.first_links += not self._used
                self._used.append(SharedLink(link))
        self._dials += 1
        self._tell()

    def _forget(self, link: Link) -> None:
        """Use a link no more."""
        self._used = [used for used in self._used if used.link is not link]
        self._tell()

    def _tell(self) -> None:
        """Let those who wait look again."""
        self._news.set()
        self._news = trio.Event()


def _abandon(thread: AsyncioThread, slot: SessionSlot, result: outcome.Outcome[Session]) -> None:
    """Close what was opened when nobody wanted it any more; its slot is free when it is closed."""
    match result:
        case outcome.Value(value=session):
            thread.post(session.abort)
        case _:
            slot.free()


async def _dial(
    thread: AsyncioThread,
    host: str,
    hops: Sequence[Hop],
    settings: SshSettings,
    when_lost: Callable[[Link], object],
) -> Link:
    """Dial; asyncssh is imported here, on the asyncio thread, for the first host there is."""
    from sortie.transports.ssh.link import dial

    return await dial(thread, host, hops, settings, when_lost)


async def _close(links: Sequence[Link]) -> None:
    await asyncio.gather(*(link.close() for link in links))
