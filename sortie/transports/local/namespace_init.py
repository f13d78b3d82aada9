"""The init of a run's PID namespace, as a reaper sees it: the kernel ends the rest with it."""

from __future__ import annotations

import os
from collections.abc import Collection, Sequence
from contextlib import suppress
from signal import Signals

from sortie.transports.local.child_process import ChildProcess
from sortie.transports.local.process_table import ProcessInfo
from sortie.transports.reaper import ProcessListing


class LocalNamespaceInit:
    """The one process that a reaper has to end; see the port of the reaper.

    SIGTERM reaches the program alone, as init passes it on. SIGKILL ends init, and with it all
    processes of the namespace: init has exited only when these are gone.
    """

    hindered = False

    def __init__(self, root: ChildProcess) -> None:
        self._root = root
        self._given_up = False

    async def list(self, *, newcomers: bool) -> ProcessListing[ProcessInfo]:  # noqa: ARG002
        """Return init while it lives."""
        if self._given_up or self._root.exit() is not None:
            return ProcessListing()
        pid = self._root.pid
        init = ProcessInfo(
            identity=self._root.identity,
            ppid=os.getpid(),
            pgid=pid,
            sid=pid,
            dead=False,
            stopped=False,
            adopted=False,
        )
        return ProcessListing(alive={pid: init})

    async def signal(
        self, processes: Sequence[ProcessInfo], number: Signals
    ) -> Sequence[ProcessInfo]:
        """Signal init; it is a child that was not reaped, so its pid is still its own."""
        with suppress(ProcessLookupError):
            os.kill(self._root.pid, number)
        return processes

    def give_up(self, processes: Collection[ProcessInfo]) -> None:  # noqa: ARG002
        """List it no more."""
        self._given_up = True
