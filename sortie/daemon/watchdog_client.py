"""The daemon's side of the watchdog of leases: starts it, and tells it the deadlines.

Rule 1: no deadline counts as known before the watchdog that is told of it runs. Where it has
ended, the next message starts another one, which is told all of them.
Rule 2: messages come from any thread, and none waits for the watchdog to read.
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import threading
from contextlib import suppress

from sortie.daemon.lease_watchdog import PROGRAM

_START_LIMIT = 10.0  # seconds for its first word
_VARIABLES = ("LD_LIBRARY_PATH",)  # an interpreter may need it to start


class LeaseWatchdog:
    """The watchdog of this process. Methods raise OSError where it cannot be started or told."""

    def __init__(self) -> None:
        self._deadlines: dict[str, float] = {}
        self._signs: list[str] = []
        self._lock = threading.Lock()
        self._socket: socket.socket | None = None
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Have it run, so that it can be told of a deadline at once."""
        with self._lock:
            if self._socket is None:
                self._start()

    def extend(self, workflow: str, deadline: float) -> None:
        """Have this process killed at a time of CLOCK_BOOTTIME, unless a later one follows."""
        with self._lock:
            self._deadlines[workflow] = deadline
            self._tell(f"until {workflow} {deadline!r}\n")

    def clear(self, workflow: str) -> None:
        """Know that nothing is done for a workflow any more."""
        with self._lock:
            if self._deadlines.pop(workflow, None) is not None:
                self._tell(f"over {workflow}\n")

    def find_runs_by(self, *, cgroup: str | None, mark: int | None) -> None:
        """Have what runs leave be killed with this process, by their cgroups or their mark."""
        signs = ([] if cgroup is None else [f"cgroup {cgroup}\n"]) + (
            [] if mark is None else [f"mark {mark}\n"]
        )
        with self._lock:
            self._signs += signs
            for sign in signs if self._socket is not None else ():
                self._tell(sign)

    def close(self) -> None:
        """End the watchdog; this process ends in good order."""
        with self._lock:
            if self._socket is not None:
                with suppress(OSError):
                    self._socket.sendall(b"bye\n")
            self._drop()

    def _tell(self, line: str) -> None:
        if self._socket is not None:
            try:
                self._socket.sendall(line.encode())
            except OSError:
                self._drop()
            else:
                return
        self._start()

    def _start(self) -> None:
        ours, theirs = socket.socketpair()
        with theirs:
            argv = [sys.executable, "-I", "-S", PROGRAM, str(os.getpid()), str(theirs.fileno())]
            self._process = subprocess.Popen(
                argv,
                env={name: os.environ[name] for name in _VARIABLES if name in os.environ},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                pass_fds=(theirs.fileno(),),
                start_new_session=True,
            )
        self._socket = ours
        known = [f"until {name} {deadline!r}\n" for name, deadline in self._deadlines.items()]
        try:
            ours.settimeout(_START_LIMIT)
            if not ours.recv(1):
                raise OSError("the watchdog of leases has ended as it started")
            ours.settimeout(1.0)
            ours.sendall("".join((*self._signs, *known)).encode())
        except OSError:
            self._drop()
            raise

    def _drop(self) -> None:
        if self._socket is not None:
            self._socket.close()
        if self._process is not None:
            with suppress(subprocess.TimeoutExpired):
                self._process.wait(1.0)
        self._socket = self._process = None
