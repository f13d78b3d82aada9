"""Daemons on machines of their own, and what can befall each of them."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TextIO

import psutil
import trio

from tests.e2e.daemon import Daemon
from tests.e2e.machines import Machine
from tests.e2e.place import Json, Place
from tests.skewed_clock import SkewedClock


@dataclass(frozen=True, slots=True, kw_only=True)
class Contender:
    """A daemon that would lead, with its directory and its machine."""

    place: Place
    daemon: Daemon
    machine: Machine
    clock: SkewedClock
    stopped: list[psutil.Process] = field(default_factory=list)
    """Its watchdogs that were stopped: they outlive a daemon that begins anew."""

    @property
    def pid(self) -> int:
        """The process of the daemon."""
        return self.daemon.process.pid

    @property
    def has_ended(self) -> bool:
        """Whether the daemon has ended."""
        return not psutil.pid_exists(self.pid) or self.daemon.is_silent

    def told(self, beginning: str, since: int = 0) -> list[Json]:
        """Return its lines of events that begin so, but for those before a number of lines."""
        lines = self.daemon.log[since:]
        wanted = ("lease.waiting", "lease.acquired") if beginning == "lease." else (beginning,)
        return [line for line in lines if line["event"].startswith(wanted)]

    @property
    def blows(self) -> Mapping[str, Callable[[], object]]:
        """What befalls a leader, each at once and in any thread."""
        return {
            "killed": lambda: self._signal(signal.SIGKILL),
            "stopped": lambda: self._signal(signal.SIGSTOP),
            "cut": self.machine.cut,
            "paused": self._pause,
            "full": self._fill_disk,
        }

    def _signal(self, number: signal.Signals) -> None:
        with suppress(ProcessLookupError):
            os.kill(self.pid, number)

    def _pause(self) -> None:
        """Stop the daemon, and before it the watchdog that would kill it."""
        for process in self._watchdogs():
            process.suspend()
            self.stopped.append(process)
        self._signal(signal.SIGSTOP)

    def _watchdogs(self) -> list[psutil.Process]:
        with suppress(psutil.NoSuchProcess):
            children = psutil.Process(self.pid).children()
            return [one for one in children if "lease_watchdog" in " ".join(one.cmdline())]
        return []

    @property
    def _filler(self) -> Path:
        return self.place.workspaces / ".filler"

    def _fill_disk(self) -> None:
        """Leave no room on the disk of the workspaces."""
        with self._filler.open("wb", buffering=0) as file, suppress(OSError):
            while True:
                file.write(b"x" * 65536)

    def go_on(self) -> None:
        """Undo what befell it, as far as it lives; its watchdog stays stopped."""
        self._signal(signal.SIGCONT)
        self.machine.mend()
        self._filler.unlink(missing_ok=True)

    async def mend_in(self, seconds: float) -> None:
        """Plug its cable in again after so many seconds."""
        await trio.sleep(seconds)
        self.machine.mend()

    def wake_watchdog(self) -> None:
        """Let its watchdog go on as well."""
        while self.stopped:
            with suppress(psutil.NoSuchProcess):
                self.stopped.pop().resume()

    def end(self) -> None:
        """Kill what is left of it."""
        for process in (*self._watchdogs(), *self.stopped):
            with suppress(psutil.NoSuchProcess):
                process.kill()
        if not self.has_ended:
            self._signal(signal.SIGKILL)

    def tell(self, file: TextIO) -> None:
        """Write down what the daemon has said."""
        file.write(f"process {self.pid} at {self.machine.address} of {self.place.root}\n")
        file.writelines(f"{json.dumps(line)}\n" for line in self.daemon.log)
        file.writelines(f"{line}\n" for line in self.daemon.strays)


async def told(place: Place, environ: Mapping[str, str], *options: str) -> Json:
    """Return what ``sortie history`` tells with these options."""
    ran = await place.sortie(
        "history", "--format", "json", "--limit", "1000", *options, within=120, **environ
    )
    assert ran.code == 0, ran
    return json.loads(ran.out)
