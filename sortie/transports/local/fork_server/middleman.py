"""The middleman of a program: makes or enters its namespaces, and starts it or its init."""

from __future__ import annotations

import ctypes
import fcntl
import os
import socket
import struct

TYPE_CHECKING = False
if TYPE_CHECKING:
    from sortie.transports.local.fork_server import confinement
    from sortie.transports.local.fork_server.init import be_init
    from sortie.transports.local.fork_server.program import leave_after, spawn
    from sortie.transports.local.fork_server.request import INSIDE, PLAIN, Request
else:
    import confinement
    from init import be_init
    from program import leave_after, spawn
    from request import INSIDE, PLAIN, Request

_CLONE_NEWNS, _CLONE_NEWUSER, _CLONE_NEWPID = 0x20000, 0x10000000, 0x20000000
_CLONE_NEWNET = 0x40000000
_SIOCSIFFLAGS, _IFF_UP = 0x8914, 1
_PR_SET_DUMPABLE = 4
_libc = ctypes.CDLL(None, use_errno=True)


def mediate(request: Request, daemon: int, statuses: int) -> None:
    """Start a program in namespaces of its own or without."""
    pid: int | None
    step = "unshare"
    # The server may not be traced, and nor may its forks: then files in /proc are root's, and a
    # /proc with hidepid= hides init from the daemon.
    _libc.prctl(_PR_SET_DUMPABLE, 1, 0, 0, 0)
    if request.cgroup and request.mode != INSIDE:
        try:
            write(request.cgroup, b"0")
        except OSError as exc:
            request.tell("no-cgroup", exc.errno)
    try:
        if request.mode == PLAIN:
            pid = spawn(request)
        else:
            own_network = request.port != 0
            if request.mode == INSIDE:
                step = "enter"
                entered = request.entered
                if own_network:
                    entered &= ~confinement.NAMESPACES["net"]
                confinement.enter(request.containers[0], entered, request.cgroup.splitlines())
                step = "unshare"
            _unshare(network=own_network)
            if own_network:
                step = "network"
                _listen(request)
            step = "fork"
            pid = os.fork()
            if pid == 0:
                leave_after(lambda: be_init(request, daemon, statuses))
    except OSError as exc:
        request.tell("failed", step, exc.errno)
    else:
        if pid is not None:
            request.tell("pid", pid)


def write(path: str | bytes, content: bytes) -> None:
    """Write to a file that is there, in one piece. Raises OSError."""
    fd = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
    try:
        os.write(fd, content)
    finally:
        os.close(fd)


def _checked(result: int) -> None:
    if result != 0:
        raise OSError(ctypes.get_errno(), "")


def _unshare(*, network: bool) -> None:
    """Enter a mount namespace, and have children in a new PID namespace; enter a network, too.

    A process without the right to do that needs a user namespace, in which its own user and
    group alone exist.
    """
    flags = _CLONE_NEWNS | _CLONE_NEWPID | (_CLONE_NEWNET if network else 0)
    user, group = os.geteuid(), os.getegid()
    if _libc.unshare(flags) == 0:
        return
    _checked(_libc.unshare(flags | _CLONE_NEWUSER))
    for name, text in (
        ("setgroups", "deny"),
        ("uid_map", f"{user} {user} 1"),
        ("gid_map", f"{group} {group} 1"),
    ):
        write(f"/proc/self/{name}", text.encode())


def _listen(request: Request) -> None:
    """Listen in this network, which has nothing but a loopback, and hand the socket on."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as listener:
        fcntl.ioctl(listener, _SIOCSIFFLAGS, struct.pack("16sh14x", b"lo", _IFF_UP))
        listener.bind(("127.0.0.1", request.port))
        listener.listen(128)
        with socket.socket(fileno=os.dup(request.report)) as report:
            socket.send_fds(report, [b"listener\n"], [listener.fileno()])
