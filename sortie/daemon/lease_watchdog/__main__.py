"""The program of the watchdog; see the package."""

from __future__ import annotations

import os
import resource
import select
import signal
import socket
import sys
import time
from contextlib import suppress

_LOOK = 0.25  # seconds between looks at the clock, which no timeout of poll follows through sleep
_SEARCHES = 20  # for processes that carry the mark
_TELL_LIMIT = 10  # seconds for the last line of the log
_CLOCK = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


class _Watch:
    """What the daemon, the process ``pid``, has said."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self.deadlines: dict[str, float] = {}
        self.cgroups: list[str] = []
        self.mark: int | None = None
        self.is_over = False

    def hear(self, line: str) -> None:
        word, _, rest = line.partition(" ")
        workflow, _, seconds = rest.rpartition(" ")
        if word == "until":
            self.deadlines[workflow] = float(seconds)
        elif word == "over":
            self.deadlines.pop(rest, None)
        elif word == "cgroup":
            self.cgroups.append(rest)
        elif word == "mark":
            self.mark = int(rest)
        elif word == "bye":
            self.is_over = True

    @property
    def passed(self) -> list[str]:
        """The workflows whose deadlines have passed."""
        now = time.clock_gettime(_CLOCK)
        return [name for name, deadline in self.deadlines.items() if deadline <= now]


def _watch(lines: socket.socket, daemon: int, pid: int) -> None:
    watch, heard, is_open, passed = _Watch(pid), b"", True, False
    while is_open:
        # This process may be late, and not the daemon: what was said meanwhile counts first.
        passed = bool(watch.passed)
        wait = 0.0 if passed else _LOOK if watch.deadlines else None
        if select.select([lines], [], [], wait)[0]:
            data = lines.recv(65536)
            *whole, heard = (heard + data).split(b"\n")
            for line in whole:
                watch.hear(line.decode())
            is_open = bool(data) and not watch.is_over
        elif passed:
            break
    if not watch.is_over:
        _end(watch, daemon)
    if is_open:
        _tell(watch)


def _end(watch: _Watch, daemon: int) -> None:
    """Kill the daemon, and what its runs left: at once, as a daemon that waits for its disk may
    outlive SIGKILL for long, and again when it has ended, as its helpers may have started more."""
    try:
        _kill(daemon)
    finally:
        _kill_runs(watch)
        select.select([daemon], [], [], 5.0)  # readable once it has ended
        _kill_runs(watch)


def _tell(watch: _Watch) -> None:
    """Say why the daemon has ended without a word, where it had its log."""
    signal.alarm(_TELL_LIMIT)
    text = (
        f"sortie: the watchdog has killed the daemon, process {watch.pid}, with SIGKILL: it neither"
        f" renewed the lease of {', '.join(watch.passed)} in time nor gave it up, so it was"
        " stopped, or hung; another daemon may lead now\n"
    )
    with suppress(OSError):
        os.write(2, text.encode())


def _kill_runs(watch: _Watch) -> None:
    """Kill what runs left on this machine; not those of the next leader, where that is a process of
    the same machine, and this one is late."""
    for directory in watch.cgroups:
        for path, _, _ in os.walk(directory):
            name = path.removeprefix(directory).lstrip("/").partition("/")[0]
            if f".{watch.pid}-" in name:  # as RunGroups names them
                with suppress(OSError), open(f"{path}/cgroup.kill", "w") as file:
                    file.write("1")
    for _ in range(_SEARCHES if watch.mark is not None else 0):
        if not _kill_marked(watch.mark):
            break
        time.sleep(0.05)


def _kill(daemon: int) -> None:
    with suppress(ProcessLookupError):
        signal.pidfd_send_signal(daemon, signal.SIGKILL)


def _kill_marked(mark: int | None) -> int:
    """Kill the processes that carry the mark; return how many there were."""
    found = 0
    for name in filter(str.isdigit, os.listdir("/proc")):
        pid = int(name)
        with suppress(OSError, OverflowError):
            if pid != os.getpid() and resource.prlimit(pid, resource.RLIMIT_RSS)[0] == mark:
                with open(f"/proc/{pid}/stat", "rb") as file:
                    if file.read().rpartition(b")")[2].split()[0] == b"Z":
                        continue
                os.kill(pid, signal.SIGKILL)
                found += 1
    return found


def _main() -> None:
    daemon, lines = map(int, sys.argv[1:3])
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGTSTP):
        signal.signal(number, signal.SIG_IGN)
    os.chdir("/")
    try:
        pidfd = os.pidfd_open(daemon)
    except ProcessLookupError:
        return  # it has ended already
    if os.getppid() != daemon:
        return
    os.write(lines, b"\n")  # it is watched from now on
    _watch(socket.socket(fileno=lines), pidfd, daemon)


if __name__ == "__main__":
    _main()
