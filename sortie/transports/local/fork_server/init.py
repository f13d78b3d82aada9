"""Process 1 of the PID namespace of a program."""

from __future__ import annotations

import ctypes
import os
import select
import signal
from collections.abc import Iterator
from contextlib import suppress

TYPE_CHECKING = False
if TYPE_CHECKING:
    from sortie.transports.local.fork_server import confinement
    from sortie.transports.local.fork_server.program import spawn, spawn_confined
    from sortie.transports.local.fork_server.request import INSIDE, STATUS, Request
else:
    import confinement
    from program import spawn, spawn_confined
    from request import INSIDE, STATUS, Request

_MS_NOSUID, _MS_NODEV, _MS_NOEXEC, _MS_REC, _MS_PRIVATE = 2, 4, 8, 1 << 14, 1 << 18
_PR_SET_NAME = 15
_libc = ctypes.CDLL(None, use_errno=True)


def be_init(request: Request, daemon: int, statuses: int) -> None:
    """Be process 1 of a namespace until the program or the daemon has ended."""
    _libc.prctl(_PR_SET_NAME, b"sortie-init", 0, 0, 0)
    program: int | None = None
    terminated = False

    def pass_on(_number: int, _frame: object) -> None:
        nonlocal terminated
        terminated = True
        if program is not None:
            meant = _innermost(program, request.wrappers)
            with suppress(ProcessLookupError):  # what a wrapper has started is reaped by that
                os.kill(meant, signal.SIGTERM)
                os.kill(meant, signal.SIGCONT)  # a stopped program takes SIGTERM once it goes on

    woken = wake_on_signals()
    signal.signal(signal.SIGTERM, pass_on)
    try:
        _mount_proc(request)
    except OSError as exc:
        request.tell("failed", "confine", exc.errno)
        return
    program = spawn_confined(request) if request.mode == INSIDE else spawn(request)
    if program is None:
        return
    if terminated:
        pass_on(signal.SIGTERM, None)
    for fd in (request.report, *request.stdio):
        os.close(fd)
    poll = select.poll()
    for fd in (woken, daemon, *request.containers):
        poll.register(fd, select.POLLIN)
    while (ready := {fd for fd, _ in poll.poll()}) == {woken}:
        os.read(woken, 4096)
        for pid, status in dead_children():
            if pid == program:
                _tell_status(request, status, statuses)
                return
    if daemon not in ready:  # the container has ended, and all that is here will be killed
        _tell_status(request, signal.SIGKILL, statuses)


def _tell_status(request: Request, status: int, statuses: int) -> None:
    with suppress(BrokenPipeError):  # the daemon has just ended
        os.write(statuses, STATUS.pack(request.number, status))


def _innermost(pid: int, wrappers: int) -> int:
    """Return the first process so many generations below one; that one while there is none."""
    below = pid
    for _ in range(wrappers):
        try:
            with open(f"/proc/{below}/task/{below}/children", "rb") as file:
                below = int(file.read().split()[0])
        except (OSError, IndexError):
            return pid
    return below


def _mount_proc(request: Request) -> None:
    """Have /proc show the namespace; where this is forbidden, the old one stays."""
    flags = _MS_NOSUID | _MS_NODEV | _MS_NOEXEC
    try:
        _checked(_libc.mount(None, b"/", None, _MS_REC | _MS_PRIVATE, None))
        _checked(_libc.mount(b"proc", b"/proc", b"proc", flags, None))
    except OSError as exc:
        if request.mode == INSIDE:
            raise  # the container's shows no process of this namespace, and so not /proc/self
        request.tell("old-proc", exc.errno)
    if request.mode == INSIDE:
        confinement.close_proc()


def wake_on_signals() -> int:
    """Return a descriptor that can be read when a signal has come."""
    woken, waker = os.pipe()
    os.set_blocking(waker, False)
    signal.set_wakeup_fd(waker, warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    return woken


def dead_children() -> Iterator[tuple[int, int]]:
    """Reap the children that have ended; yield the pid and the wait status of each."""
    with suppress(ChildProcessError):
        while (dead := os.waitpid(-1, os.WNOHANG))[0] != 0:
            yield dead


def _checked(result: int) -> None:
    if result != 0:
        raise OSError(ctypes.get_errno(), "")
