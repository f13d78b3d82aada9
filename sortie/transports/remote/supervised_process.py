"""A program on a host that outlives the link to it: its supervisor there keeps what it writes.

Rule 1: one task carries the link: it takes what comes, and where the link is lost it makes another,
until the program is over or nothing has been heard for as long as it lives without a link.
Rule 2: while there is no link, output pauses, stdin is held up, and nothing is lost or repeated.
"""

from __future__ import annotations

import signal
from collections import deque
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, suppress

import trio
from msgspec import Struct, field

from sortie.model import HostError, HostTrouble, TransportError
from sortie.resources.lease import LeaseLost
from sortie.transports import Exit, Stdin
from sortie.transports.lost_links import LostLinks
from sortie.transports.reaper import KILL_BOUND
from sortie.transports.remote.channel import BACKLOG, PAUSE_ABOVE
from sortie.transports.remote.fence import LOST, UNLED, refused_leader
from sortie.transports.remote.forced_end import FINISH_BOUND, still_there
from sortie.transports.remote.launch import Bounds, HostGone, lapsed, nonsense
from sortie.transports.remote.process import LAST_MESSAGES, SIGNALLED, RemoteProgram
from sortie.transports.remote.protocol import GO, HERE
from sortie.transports.remote.remote_script import LentShell, RemoteScript
from sortie.transports.remote.shell import Shell, ShellQuestion
from sortie.transports.remote.supervised_stdin import SupervisedStdin
from sortie.transports.remote.supervision import DONE, END, Supervision
from sortie.transports.remote.supervisor_scripts import ending_body

_CONCLUSION = 3.0  # seconds for what the supervisor says after the end of a tree
_PAUSE, _LONGEST_PAUSE = 0.5, 5.0  # seconds between tries to reach a host again


class Links(Struct, frozen=True, kw_only=True):
    """What is called, with the program's run, when its link is lost, and when it is there again
    after so many seconds; ``new_nonce`` gives a text that was never used before. ``lost_now`` are
    the programs that wait for a link."""

    new_nonce: Callable[[], str]
    lost: Callable[[str, HostError], object] = lambda _run, _error: None
    restored: Callable[[str, float], object] = lambda _run, _seconds: None
    lost_now: LostLinks = field(default_factory=LostLinks)


class SupervisedProcess(RemoteProgram):
    """A supervised program and its tree on a host; see ``RemoteProgram``."""

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
        self._ending = self._is_let_go = False
        self._finished = trio.Event()  # nothing more comes
        self._news = trio.Event()
        self._carrying = trio.CancelScope(shield=True)
        self._supervised_stdin: SupervisedStdin | None = None

    async def start(self, bounds: Bounds) -> None:
        """Have the supervisor start the program, and wait until it has; see ``RemoteProgram``."""
        if not self._script.begun:
            raise self._no_start()
        self._beat = bounds.beat
        self._use_lease()
        if self._lent is None:
            self._channel.write(self._supervision.starting())
        await self._expect(HERE, bounds.start)
        if self._root is None:
            raise nonsense(self._host)
        await self._send_stdin(bounds)
        self._use_lease()
        self._channel.write(GO)
        if self._launch.namespaces is not None:
            await self._expect("namespace", bounds.start)
        await self._expect("root", bounds.start)
        await self._expect("started", bounds.start)
        self._hear_message(f"attached {await self._expect('attached', bounds.start)}")
        self._has_started = True
        if self._launch.command.stdin is Stdin.PIPE:
            self._supervised_stdin = SupervisedStdin(
                self._supervision, self._write, self._await_news, self._reads_no_more, self._tell
            )
        trio.lowlevel.spawn_system_task(self._carry)

    def let_go(self) -> None:
        """Have the program live on when its block is left; see KeptProcess."""
        self._is_let_go = True

    @property
    def stdin(self) -> SupervisedStdin | None:  # type: ignore[override]
        """The program's stdin, where the command asks for one; see the port."""
        return self._supervised_stdin

    # The task that carries the link

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
        while (item := await self._channel.receive()) is not None:
            stream, before, message = item
            if stream and before:
                await self._hold(stream, before)
                self._write(self._supervision.take(stream, before))
            if message is not None:
                self._hear_message(message)
            if self._supervision.gone is not None or self._supervision.unwatched:
                return

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

    # What the process is asked

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

    async def _known_exit(self) -> Exit:
        while not self._over:
            await self._news.wait()
        exit_ = self._exit()
        if self._supervision.unkept:
            raise HostError(
                HostTrouble.UNREACHABLE,
                f"the output of process {self.identity.pid} could not be kept on host {self._host};"
                " look at the space in TMPDIR there, and at what is killed there",
            )
        if exit_ is None or self._lost is not None:
            raise self._lost or self._dropped(
                "its supervisor there is no more; look at what has killed it"
            )
        return exit_

    async def _has_lapsed(self, exit_: Exit) -> bool:
        if exit_.signal is not None and not exit_.by_us:
            with trio.move_on_after(LAST_MESSAGES):
                await self._finished.wait()
        return self._supervision.lapsed

    async def wait(self) -> Exit:
        """Wait until the program has exited; see the port. A link that is lost meanwhile and comes
        back in time is no error."""
        exit_ = await self._known_exit()
        if await self._has_lapsed(exit_):
            raise lapsed(self._host, self._supervision.reattach)
        return exit_

    async def leave(self) -> None:
        """End what may have been started; takes the grace time and some seconds at most."""
        try:
            if not self._may_have_started or self._refused or self._is_let_go:
                return
            bound = self._launch.command.grace + KILL_BOUND + 2 * FINISH_BOUND + _CONCLUSION
            with trio.move_on_after(bound, shield=True) as limit:
                await self._end_for_certain()
                if self._has_started:
                    try:
                        await self._known_exit()
                    finally:
                        await self._dismiss_supervisor()
            if limit.cancelled_caught:
                raise self._unsure(f"host {self._host} could not be asked in {bound:.0f} s")
        finally:
            self._carrying.cancel()
            self._finished.set()
            self._tell()

    async def _dismiss_supervisor(self) -> None:
        """See to it that the supervisor goes, once all was heard."""
        if self._supervision.gone is None:
            return
        if self._lent is not None:
            await self._shell.take_back(self._lent)
            if self._lent.shell.is_idle:
                return
        await self._shell.await_close(self._channel)
        if self._channel.exit_status is None:
            # It may not have heard that it can go. Its own time is over at last.
            with suppress(TransportError):
                await self._remove_supervisor()

    async def _end(self) -> None:
        if self._exit() is None:
            self._by_us = True
        self._ending = self._drains = True
        self._tell()
        if self._has_started:
            if self._supervision.attached:
                self._channel.write(END)
            with trio.move_on_after(self._launch.command.grace + KILL_BOUND):
                await self._wait_or_hurry(self._finished)
        left = self._supervision.gone
        if left is None:
            left = await self._end_from_here()
            with trio.move_on_after(_CONCLUSION if self._has_started else 0):
                await self._finished.wait()
            if self._failure is None and self._supervision.gone is None:
                try:
                    await self._remove_supervisor()
                except TransportError as error:
                    self._failure = self._unsure(str(error))
        if left:
            self._failure = still_there(self._host, self.identity.pid, left)

    async def _remove_supervisor(self) -> None:
        question = ShellQuestion(
            attempt=f"remove the files of process {self.identity.pid}",
            body=ending_body([self._supervision.id]),
            bound=FINISH_BOUND,
            urgent=True,
            fence=self._launch.ends_by,
        )
        await self._shell.ask(question)

    async def _hear(self, expected: str) -> str:
        while True:
            found = await self._script.next()
            if found is None:
                raise self._no_start()
            if not found[1].startswith("errors "):
                return self._heard(expected, found[1])

    def _exit(self) -> Exit | None:
        status = self._supervision.exit
        if status is None:
            return None
        number = status - SIGNALLED
        if number > 0 and number in set(signal.Signals):
            return Exit(signal=number, by_us=self._by_us)
        return Exit(status=status, by_us=self._by_us)
