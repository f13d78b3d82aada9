"""The first process of a command, which is a child of this process: how it ended, and its pid.

Rule: it is not reaped until ``reap`` is called, so that meanwhile no other process or group can
have its number (on Linux).
"""

from __future__ import annotations

import math
import os
import subprocess
from contextlib import suppress
from functools import partial

import trio

from sortie.model import ProcessIdentity
from sortie.resources import note, run_in_thread, shortage_behind
from sortie.transports import Exit
from sortie.transports.local.fork_client import Started

_LOOK_AGAIN = 0.1  # seconds between looks at a child while there is no descriptor to wait on


class ChildProcess:
    """A child of this process: a program in a session of its own, or the init of its namespace.

    ``pinned`` tells whether its number is still its own.
    """

    def __init__(
        self, process: subprocess.Popen[bytes] | Started, identity: ProcessIdentity
    ) -> None:
        self._process = process
        self._exit: Exit | None = None
        self._pidfd: int | None = None
        self._awaited: trio.Event | None = None
        self.pid = process.pid
        self.pinned = True
        self.identity = identity

    def exit(self) -> Exit | None:
        """Return how the process ended, or None while it runs; does not reap it."""
        if self._exit is None and self.pinned:
            try:
                state = os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOWAIT | os.WNOHANG)
            except ChildProcessError:
                self._exit, self.pinned = Exit(), False
            else:
                if state is not None:
                    self._exit = self._program_exit() or _exit_of(state)
        return self._exit

    async def exited(self) -> Exit:
        """Wait until the process has exited; several tasks may wait at once."""
        if self.exit() is not None:
            await trio.lowlevel.checkpoint()
        while (exit_ := self.exit()) is None:
            if self._awaited is not None:
                await self._awaited.wait()
                continue
            # One task waits for all; where it is cancelled, another takes over.
            self._awaited = trio.Event()
            try:
                await self._wait()
            finally:
                self._awaited.set()
                self._awaited = None
        return exit_

    def reap(self) -> None:
        """Give the pid back, if the process has exited; does nothing while it runs."""
        if self.exit() is None:
            return
        if self.pinned:
            self.pinned = False
            os.waitpid(self.pid, 0)
            if isinstance(self._process, subprocess.Popen):
                self._process.returncode = 0  # or it would look for it in the end
        if self._pidfd is not None:
            trio.lowlevel.notify_closing(self._pidfd)
            os.close(self._pidfd)
            self._pidfd = None

    def _program_exit(self) -> Exit | None:
        """Return what the init of a namespace has told of its program."""
        status = self._process.status() if isinstance(self._process, Started) else None
        if status is None:
            return None
        code = os.waitstatus_to_exitcode(status)
        return Exit(signal=-code) if code < 0 else Exit(status=code)

    async def _wait(self) -> None:
        try:
            if self._pidfd is None:
                self._pidfd = os.pidfd_open(self.pid)
        except (AttributeError, OSError) as exc:
            shortage = shortage_behind(exc)
            if shortage is not None:
                note(shortage)
                await trio.sleep(_LOOK_AGAIN)
                return
            with suppress(ChildProcessError):
                await run_in_thread(
                    partial(os.waitid, os.P_PID, self.pid, os.WEXITED | os.WNOWAIT),
                    abandon_on_cancel=True,
                    limiter=trio.CapacityLimiter(math.inf),
                )
            return
        with suppress(trio.ClosedResourceError):  # by ``reap``
            await trio.lowlevel.wait_readable(self._pidfd)


def _exit_of(state: os.waitid_result) -> Exit:
    if state.si_code == os.CLD_EXITED:
        return Exit(status=state.si_status)
    return Exit(signal=state.si_status)
