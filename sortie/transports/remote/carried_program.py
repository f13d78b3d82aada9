"""A program on a host that outlives the link to it: its supervisor there keeps what it writes.

Rule 1: one task carries the link: it takes what comes, and where the link is lost it makes another,
until the program is over or nothing has been heard for as long as it lives without a link.
Rule 2: while there is no link, output pauses, stdin is held up, and nothing is lost or repeated.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack

import trio

from sortie.model import HostError, HostTrouble, TransportError
from sortie.resources.lease import LeaseLost
from sortie.transports.lost_links import Links
from sortie.transports.remote.channel import BACKLOG, PAUSE_ABOVE
from sortie.transports.remote.fence import LOST, UNLED, refused_leader
from sortie.transports.remote.launch import Bounds, HostGone
from sortie.transports.remote.process import RemoteProgram
from sortie.transports.remote.protocol import Item
from sortie.transports.remote.remote_script import LentShell, RemoteScript
from sortie.transports.remote.shell import Shell
from sortie.transports.remote.supervision import DONE, END, Supervision

_PAUSE, _LONGEST_PAUSE = 0.5, 5.0  # seconds between tries to reach a host again

TRIED_AFTER = 30.0
"""Seconds in which nothing comes after which a link is tried that may only seem to be there."""

TRIAL_BOUND = 15.0  # seconds


class CarriedProgram(RemoteProgram):
    """A program whose supervisor is heard over one link after another."""

    def __init__(
        self,
        shell: Shell,
        supervision: Supervision,
        script: RemoteScript,
        hurry: trio.Event,
        stack: AsyncExitStack,
        links: Links,
        lent: LentShell | None = None,
    ) -> None:
        super().__init__(shell, supervision.launch, script, hurry, stack)
        self._supervision = supervision
        self._links = links
        self._lent = lent
        self._beat = Bounds().beat
        self._lost: TransportError | LeaseLost | None = None
        self._lost_at: float | None = None
        self._chunks_held: deque[tuple[int, bytes]] = deque()
        self._held = 0
        self._drains = False
        self._ending = False
        self._finished = trio.Event()  # nothing more comes
        self._news = trio.Event()
        self._carrying = trio.CancelScope(shield=True)

    async def _carry(self) -> None:
        with self._carrying:
            try:
                await self._carry_links()
            except (TransportError, LeaseLost) as exc:
                self._lost = exc
            except Exception as exc:  # a task that nobody awaits
                self._lost = HostError(HostTrouble.DROPPED, f"{exc} ({type(exc).__name__})")
            finally:
                self._links.lost_now.discard(self._launch.cookie, self)
                self._finished.set()
                self._tell()

    async def _carry_links(self) -> None:
        pause, lost = _PAUSE, self._dropped("its session was closed")
        while True:
            await self._take_all()
            if self._supervision.gone is not None:
                self._say_done()
                return
            if isinstance(self._channel.lost, HostGone):
                raise self._channel.lost
            self._channel.abort()
            if self._supervision.unwatched:
                raise self._dropped("what watches over it is no more; look at what has killed it")
            if self._lost_at is None:
                self._lost_at, pause = trio.current_time(), _PAUSE
                lost = self._channel.lost or lost
                self._links.lost_now.add(self._launch.cookie, self)
                self._links.lost(self._launch.cookie, lost)
            elif trio.current_time() + pause >= self._lost_at + self._supervision.reattach:
                raise lost
            else:
                await trio.sleep(pause)
                pause = min(2 * pause, _LONGEST_PAUSE)
            with trio.move_on_at(self._lost_at + self._supervision.reattach):
                await self._attach()

    def _say_done(self) -> None:
        lent = self._lent
        if lent is not None and lent.script is self._script:
            lent.dismiss(DONE)
        else:
            self._channel.write(DONE)
            self._lent = None

    async def _attach(self) -> None:
        """Have a shell on a new link attached to the supervisor, where it can be had."""
        self._use_lease()
        nonce = self._links.new_nonce()
        text, parser = self._supervision.attaching(nonce), self._supervision.parser()
        attempt = "go on with a program"
        try:
            self._script = await self._shell.begin(attempt, nonce, text, parser=parser, urgent=True)
        except HostGone:
            raise
        except HostError:
            return
        self._channel = self._script.channel
        self._use_lease()
        self._stack.callback(self._channel.abort)

    def _dropped(self, what: str) -> HostError:
        return HostError(
            HostTrouble.DROPPED, f"lost process {self.identity.pid} on host {self._host}: {what}"
        )

    async def _take_all(self) -> None:
        """Take what comes on the link until it is over, or all was heard."""
        while (item := await self._received()) is not None:
            stream, before, message = item
            if stream and before:
                await self._hold(stream, before)
                self._write(self._supervision.take(stream, before))
            if message is not None:
                self._hear_message(message)
            if self._supervision.gone is not None or self._supervision.unwatched:
                return

    async def _received(self) -> Item | None:
        """Return what comes next on the link; None where that is over, or nothing answers there."""
        while True:
            with trio.move_on_after(TRIED_AFTER if self._shell.is_relayed else math.inf):
                return await self._channel.receive()
            try:
                await self._shell.try_link(TRIAL_BOUND)
            except HostError as exc:
                if self._channel.is_empty:
                    self._channel.lost = self._channel.lost or _as_lost(exc)
                    return None

    def _hear_message(self, message: str) -> None:
        told = self._supervision.hear(message)
        name = message.partition(" ")[0]
        if name in (LOST, UNLED):
            raise refused_leader(self._host, name)
        if name == "attached":
            self._channel.beat(self._beat, told)
            if self._ending:
                self._channel.write(END)
            if self._lost_at is not None:
                seconds = trio.current_time() - self._lost_at
                self._lost_at = None
                self._links.lost_now.discard(self._launch.cookie, self)
                self._links.restored(self._launch.cookie, seconds)
        else:
            self._write(told)
        self._tell()

    async def _hold(self, stream: int, chunk: bytes) -> None:
        while self._held >= PAUSE_ABOVE and not self._drains:
            await self._news.wait()
        if not (self._drains and self._held >= BACKLOG):
            self._chunks_held.append((stream, chunk))
            self._held += len(chunk)
        self._tell()

    def _write(self, data: bytes) -> None:
        if data:
            self._channel.write(data)

    def _tell(self) -> None:
        self._news.set()
        self._news = trio.Event()

    async def _await_news(self) -> None:
        await self._news.wait()

    def _reads_no_more(self) -> bool:
        return self._over or self._ending or self._supervision.stdin_broken

    @property
    def _over(self) -> bool:
        return self._finished.is_set() or self._supervision.exit is not None

    async def _chunks(self) -> AsyncIterator[tuple[int, bytes]]:
        while True:
            await trio.lowlevel.checkpoint()
            news = self._news
            if self._chunks_held:
                stream, chunk = self._chunks_held.popleft()
                self._held -= len(chunk)
                self._tell()
                yield stream, chunk
            elif self._finished.is_set():
                return
            else:
                await news.wait()


def _as_lost(error: HostError) -> HostError:
    """Return the error for a link over which a host does not answer any more."""
    return error if isinstance(error, HostGone) else HostError(HostTrouble.DROPPED, str(error))
