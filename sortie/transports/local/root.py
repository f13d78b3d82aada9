"""The first process of a command, held unreaped so that its pid and group stay its own.

Rule 1: until ``reap`` no other process or group can have this number (on Linux).
"""

from __future__ import annotations

import os
from contextlib import suppress

import trio

from sortie.resources import FIRST_PAUSE, LONGEST_PAUSE, note, shortage_behind
from sortie.resources.descriptors import released_reserve
from sortie.transports import Exit
from sortie.transports.local.identity import identity_of

_LOOK_AGAIN = 0.1  # seconds between looks at a child while there is no descriptor to wait on


async def rooted(process: trio.Process) -> Root:
    """Return the root of a command that was started, whatever stands in the way of knowing it."""
    pause = FIRST_PAUSE
    root = _rooted(process)
    while root is None:
        # Cancelling this would leave a process that nobody knows.
        with trio.CancelScope(shield=True):
            await trio.sleep(pause)
        pause = min(pause * 2, LONGEST_PAUSE)
        root = _rooted(process)
    return root


def _rooted(process: trio.Process) -> Root | None:
    """Return the root, None where a shortage stands in the way."""
    try:
        return Root(process)
    except OSError as exc:
        shortage = shortage_behind(exc)
        if shortage is None:
            raise
        note(shortage)
    with released_reserve(), suppress(OSError):
        return Root(process)
    return None


class Root:
    """A child of this process; it has its own session and process group."""

    def __init__(self, process: trio.Process) -> None:
        self._process = process
        self._exit: Exit | None = None
        self.pid = process.pid
        self.pinned = True
        self.identity = identity_of(process.pid)

    def exit(self) -> Exit | None:
        """Return how the process ended, or None while it runs; does not reap it."""
        if self._exit is None and self.pinned:
            try:
                state = os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOWAIT | os.WNOHANG)
            except ChildProcessError:
                self._exit, self.pinned = Exit(), False
            else:
                if state is not None:
                    by_signal = state.si_code != os.CLD_EXITED
                    self._exit = (
                        Exit(signal=state.si_status) if by_signal else Exit(status=state.si_status)
                    )
        return self._exit

    async def exited(self) -> Exit:
        """Wait until the process has exited; several tasks may wait at once."""
        while True:
            exit_ = self.exit()
            if exit_ is not None:
                await trio.lowlevel.checkpoint()
                return exit_
            await self._wait()

    async def reap(self) -> None:
        """Give the pid back, if the process has exited; does nothing while it runs."""
        if self.exit() is not None and self.pinned:
            self.pinned = False
            await self._process.wait()

    async def _wait(self) -> None:
        try:
            pidfd = os.pidfd_open(self.pid)
        except (AttributeError, OSError) as exc:
            shortage = shortage_behind(exc)
            if shortage is not None:
                note(shortage)
                await trio.sleep(_LOOK_AGAIN)
                return
            code = await self._process.wait()
            self.pinned = False
            self._exit = Exit(status=code) if code >= 0 else Exit(signal=-code)
            return
        try:
            await trio.lowlevel.wait_readable(pidfd)
        finally:
            with suppress(OSError):
                os.close(pidfd)
