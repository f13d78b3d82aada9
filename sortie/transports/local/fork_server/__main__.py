"""The loop of the fork server, and its start; see the package."""

from __future__ import annotations

import ctypes
import gc
import os
import resource
import select
import signal
import socket
import struct
import sys
from contextlib import suppress

TYPE_CHECKING = False
if TYPE_CHECKING:
    from sortie.transports.local.fork_server.init import dead_children, wake_on_signals
    from sortie.transports.local.fork_server.middleman import mediate, write
    from sortie.transports.local.fork_server.program import leave_after
    from sortie.transports.local.fork_server.request import DESCRIPTORS, Request
else:
    from init import dead_children, wake_on_signals
    from middleman import mediate, write
    from program import leave_after
    from request import DESCRIPTORS, Request

_PR_SET_DUMPABLE, _PR_SET_NAME = 4, 15
_libc = ctypes.CDLL(None, use_errno=True)


def _serve(requests: socket.socket, statuses: int, daemon: int) -> None:
    woken = wake_on_signals()
    reports: dict[int, int] = {}  # of the programs that are being started, by their middlemen
    poll = select.poll()
    poll.register(requests, select.POLLIN)
    poll.register(woken, select.POLLIN)
    while True:
        ready = [fd for fd, _ in poll.poll()]
        if woken in ready:
            os.read(woken, 4096)
            for pid, _ in dead_children():
                os.close(reports.pop(pid))
        if requests.fileno() not in ready:
            continue
        size = socket.CMSG_LEN((DESCRIPTORS + 1) * 4)
        data, control, _, _ = requests.recvmsg(1, size, socket.MSG_CMSG_CLOEXEC)
        if not data:
            return  # the daemon has ended
        fds = [fd for _, _, part in control for fd in struct.unpack(f"{len(part) // 4}i", part)]
        if len(fds) >= DESCRIPTORS:
            _start(fds, reports, requests, statuses, daemon)
        else:
            _close(*fds)  # there were too few descriptors left; an empty report says so


def _start(
    fds: list[int], reports: dict[int, int], requests: socket.socket, statuses: int, daemon: int
) -> None:
    """Fork the middleman of a request; its report ends when that one has been reaped."""
    report = fds[1]
    try:
        pid = os.fork()
    except OSError as exc:
        os.write(report, f"failed fork {exc.errno}\n".encode())
        _close(*fds)
        return
    if pid == 0:
        requests.close()
        _close(*reports.values())
        leave_after(lambda: mediate(Request(fds), daemon, statuses))
    reports[pid] = report
    _close(*(fd for fd in fds if fd != report))


def _close(*fds: int) -> None:
    for fd in fds:
        os.close(fd)


def _main() -> None:
    daemon, requests, statuses, open_files = map(int, sys.argv[1:5])
    for name in ("SIGINT", "SIGTERM", "SIGHUP"):
        signal.signal(getattr(signal, name), signal.SIG_IGN)
    _libc.prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)  # agents must not look into this process
    _libc.prctl(_PR_SET_NAME, b"sortie-fork", 0, 0, 0)
    os.chdir("/")
    try:
        pidfd = os.pidfd_open(daemon)
    except ProcessLookupError:
        return  # it has ended already
    if os.getppid() != daemon:
        return
    if sys.argv[5]:
        with suppress(OSError):  # then the limits of agents do not hold; nothing else is lost
            write(sys.argv[5], b"0")
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (open_files, hard))
    gc.disable()
    gc.freeze()  # forked processes share what the collector would touch
    os.set_inheritable(requests, False)
    os.set_inheritable(statuses, False)
    _serve(socket.socket(fileno=requests), statuses, pidfd)


if __name__ == "__main__":
    _main()
