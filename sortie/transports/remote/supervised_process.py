"""A program on a host that outlives the link to it: its start, its exit and its end."""

from __future__ import annotations

import signal
from contextlib import AsyncExitStack, suppress

import trio

from sortie.model import HostError, HostTrouble, TransportError
from sortie.transports import Exit, Stdin
from sortie.transports.lost_links import Links
from sortie.transports.reaper import KILL_BOUND
from sortie.transports.remote.carried_program import CarriedProgram
from sortie.transports.remote.forced_end import FINISH_BOUND, still_there
from sortie.transports.remote.launch import Bounds, lapsed, nonsense
from sortie.transports.remote.process import LAST_MESSAGES, SIGNALLED
from sortie.transports.remote.protocol import GO, HERE
from sortie.transports.remote.remote_script import LentShell, RemoteScript
from sortie.transports.remote.shell import Shell, ShellQuestion
from sortie.transports.remote.supervised_stdin import SupervisedStdin
from sortie.transports.remote.supervision import END, Supervision
from sortie.transports.remote.supervisor_scripts import ending_body

_CONCLUSION = 3.0  # seconds for what the supervisor says after the end of a tree


class SupervisedProcess(CarriedProgram):
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
        super().__init__(shell, supervision, script, hurry, stack, links, lent)
        self._is_let_go = False
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

    # What the process is asked

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
