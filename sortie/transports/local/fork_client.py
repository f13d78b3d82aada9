"""The daemon's side of the fork server: starts programs by it, and starts it.

Rule 1: the server is a child of this process, which is a child subreaper, so that it adopts what
the server's middlemen leave behind: the programs, or the inits of their namespaces.
Rule 2: where the server has ended, the next start makes a new one. What it has started goes on.
"""

from __future__ import annotations

import errno
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from itertools import count

from sortie.resources.descriptors import limit_of_programs
from sortie.transports import PROXY_PORT, WRAPPED_STDIN
from sortie.transports.container_entrance import ContainerEntrance
from sortie.transports.local import fork_server
from sortie.transports.local.fork_server.request import INSIDE, NAMESPACE, PLAIN, STATUS, encoded

_CHUNK = 4096
_VARIABLES = ("LD_LIBRARY_PATH",)  # an interpreter may need it to start


class NoNamespace(OSError):
    """A PID namespace was refused."""


class NotEntered(OSError):
    """A container could not be entered, or a program could not be confined there."""


def no_namespace(exc: OSError) -> str:
    """Say why there is no PID namespace, and what can be done about it."""
    match exc.errno:
        case errno.EPERM | errno.EACCES:
            advice = (
                "a sandbox or the kernel forbids it (RestrictNamespaces= of a systemd unit, a"
                " container's seccomp profile, kernel.unprivileged_userns_clone,"
                " kernel.apparmor_restrict_unprivileged_userns)"
            )
        case errno.ENOSPC:
            advice = "user.max_user_namespaces or user.max_pid_namespaces is reached"
        case _:
            advice = "this kernel may have none"
    return f"no PID namespace can be made: {exc.strerror}; {advice}"


class _Server:
    """A fork server that runs, with our ends of its socket and of its pipe of statuses."""

    def __init__(self, cgroup: str) -> None:
        self.requests, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.statuses, written = os.pipe()
        os.set_blocking(self.statuses, False)
        self._unread_statuses: dict[int, int] = {}
        self._lock = threading.Lock()
        argv = [sys.executable, "-I", "-S", fork_server.PROGRAM, str(os.getpid())]
        argv += [str(theirs.fileno()), str(written), str(limit_of_programs()), cgroup]
        with ExitStack() as undone:
            undone.callback(self.requests.close)
            undone.callback(os.close, self.statuses)
            with theirs, os.fdopen(written, "wb", buffering=0):
                self.process = subprocess.Popen(
                    argv,
                    env={name: os.environ[name] for name in _VARIABLES if name in os.environ},
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                    pass_fds=(theirs.fileno(), written),
                    start_new_session=True,
                )
            undone.pop_all()

    def status(self, number: int) -> int | None:
        """Return the wait status of a program in a namespace, by the number of its request.

        None where its init was killed before it could write it.
        """
        with self._lock:
            try:
                while read := os.read(self.statuses, STATUS.size * 64):
                    self._unread_statuses.update(STATUS.iter_unpack(read))
            except BlockingIOError:
                pass
            return self._unread_statuses.pop(number, None)

    def close(self) -> None:
        """End the server; what it has started goes on."""
        self.requests.close()
        self.process.wait()
        os.close(self.statuses)


class Started:
    """A program that the server has started: ``pid`` is its own, or that of its init.

    ``in_cgroup`` tells whether it has entered the cgroup that was asked for. ``old_proc`` is the
    error number for which /proc shows the processes of the old namespace.
    """

    def __init__(self, server: _Server, number: int, pid: int, said: Mapping[str, bytes]) -> None:
        self.pid = pid
        self.in_cgroup = "no-cgroup" not in said
        self.old_proc = int(said["old-proc"]) if "old-proc" in said else None
        self._server = server
        self._number = number

    def status(self) -> int | None:
        """Return the program's wait status once init has exited, None where it was not written."""
        return self._server.status(self._number)


class ForkServer:
    """Starts programs by the fork server. ``namespaces`` tells whether each is to have its own.

    ``cgroup`` is a file that the server's pid is written to as it starts, so that all that it
    starts is in that cgroup; empty where there is none.
    """

    def __init__(self, *, namespaces: bool, cgroup: str = "") -> None:
        self.namespaces = namespaces
        self._cgroup = cgroup
        self._server: _Server | None = None
        self._numbers = count(1)
        self._lock = threading.Lock()

    @property
    def pid(self) -> int | None:
        """The pid of the server, None while none runs."""
        return None if self._server is None else self._server.process.pid

    def open(self) -> None:
        """Start the server, if it does not run; it takes requests as soon as it can."""
        self._running()

    def start(
        self,
        argv: tuple[str, ...],
        *,
        program: str,
        cwd: str,
        env: Mapping[str, str],
        stdio: tuple[int, int, int],
        cgroup: str = "",
        wrappers: int = 0,
        listener: Callable[[socket.socket], object] | None = None,
        container: ContainerEntrance | None = None,
    ) -> Started:
        """Start a program and return when it has been executed; blocks.

        ``stdio`` are descriptors of its stdin, stdout and stderr. ``cgroup`` is the file of a
        cgroup that it enters first. ``wrappers``, ``listener`` and ``container`` are as in a
        Command; in a container a plain name of a program is looked up on the PATH in ``env``.
        Raises NoNamespace, NotEntered, and what starting a program raises: OSError with the
        directory as ``filename`` where that cannot be entered.
        """
        number = next(self._numbers)
        mode = NAMESPACE if self.namespaces else PLAIN
        fds: tuple[int, ...] = stdio
        entered = 0
        if container is not None:
            mode, cgroup, fds = INSIDE, "\n".join(container.cgroups), (*stdio, container.pidfd)
            entered = container.namespaces
        port = 0 if listener is None else PROXY_PORT
        stdin = WRAPPED_STDIN if wrappers else 0
        content = encoded(
            number,
            mode,
            cgroup,
            program,
            cwd,
            argv,
            env,
            wrappers=wrappers,
            stdin=stdin,
            port=port,
            entered=entered,
        )
        server = self._running()
        report, sockets = _report(server.requests, content, fds)
        if report is None:  # another process ended it since it was last used
            server = self._running(instead_of=server)
            report, sockets = _report(server.requests, content, fds)
        for one in sockets:
            if listener is None:
                one.close()
            else:
                listener(one)
        lines = [line.partition(b" ") for line in (report or b"").splitlines()]
        said = {word.decode(): rest for word, _, rest in lines}
        pid = int(said["pid"]) if "pid" in said else None
        if "failed" in said:
            if pid is not None:
                os.waitpid(pid, 0)  # the init of a program that could not be executed
            raise _error(said["failed"].split(), program, cwd, said.get("interpreter"))
        if pid is None:
            raise OSError(errno.EAGAIN, "the fork server could not start a program")
        return Started(server, number, pid, said)

    def close(self) -> None:
        """End the server."""
        with self._lock:
            server, self._server = self._server, None
        if server is not None:
            server.close()

    def _running(self, instead_of: _Server | None = None) -> _Server:
        with self._lock:
            if self._server is None or self._server is instead_of:
                if instead_of is not None:
                    instead_of.process.wait()
                self._server = _Server(self._cgroup)
            return self._server


def _report(
    requests: socket.socket, content: bytes, fds: tuple[int, ...]
) -> tuple[bytes | None, list[socket.socket]]:
    """Send a request; return its report, None where the server has ended, and the sockets that came
    with it."""
    file = os.memfd_create("request", os.MFD_CLOEXEC)
    try:
        _write_all(file, content)
        os.lseek(file, 0, os.SEEK_SET)
        report, written = socket.socketpair()
        with report:
            with written:
                try:
                    socket.send_fds(requests, [b"+"], [file, written.fileno(), *fds])
                except (BrokenPipeError, ConnectionResetError):
                    return None, []
            said, sockets = b"", []
            while (received := socket.recv_fds(report, _CHUNK, 1))[0]:
                said += received[0]
                sockets += [socket.socket(fileno=fd) for fd in received[1]]
            return said, sockets
    finally:
        os.close(file)


def _write_all(fd: int, content: bytes) -> None:
    view = memoryview(content)
    while view:
        view = view[os.write(fd, view) :]


def _error(failed: list[bytes], program: str, cwd: str, interpreter: bytes | None) -> OSError:
    step, number = failed[0].decode(), int(failed[1])
    message = os.strerror(number)
    if step == "chdir":
        return OSError(number, message, cwd)
    if step == "unshare":
        return NoNamespace(number, message)
    if step == "network":
        return OSError(number, f"no network of its own can be made: {message}", program)
    if step in ("enter", "confine"):
        return NotEntered(number, message)
    if interpreter is not None:
        return OSError(number, message, program, None, os.fsdecode(interpreter))
    return OSError(number, message, program)
