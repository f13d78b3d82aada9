"""The program of the fork server: a small process of one thread that starts the programs of runs.

The daemon cannot do this well itself. It has many threads and much memory, so it must not run code
between fork and exec; and making a PID namespace takes two forks.

For each request the server forks a middleman. That one makes the namespaces, forks their init, and
exits when the program has been executed; init is then adopted by the daemon, which is a child
subreaper. Init is process 1 of its namespace. It starts the program, reaps orphans, passes SIGTERM
on to the program alone, writes the program's wait status to the pipe of statuses, and exits. When
it exits, or is killed, or the daemon ends, the kernel kills all processes of the namespace
(pid_namespaces(7)). Without a namespace the middleman forks the program itself, which the daemon
adopts.

A program may be started in a container that runs: its middleman enters the namespaces of the
container first, and its init ends with the container as well (see ``confinement``).

It is run as a script by ``fork_client``, imports nothing of Sortie, and gets on its command line:
the pid of the daemon, the descriptors of the socket of requests and of the pipe of statuses, the
soft limit of open files that programs begin with, and a file that its own pid is written to so that
it enters a cgroup, or nothing. A request is one byte
with five descriptors: a file with the request, the pipe of the report, and the program's stdin,
stdout and stderr; and a sixth, a pidfd of the process that keeps a container, where the program is
to be in one. The report has a line for each thing that happened and ends when the program runs and
the middleman is gone.

The server reads no request: its middlemen do. So nothing that it hands on to a later one, or to an
init, is a secret of another program.

Rule 1: the server lives until its socket ends; the daemon alone holds the other end.
Rule 2: init lives no longer than the daemon, which it knows by a pidfd.
"""

from __future__ import annotations

import ctypes
import fcntl
import gc
import os
import resource
import select
import signal
import socket
import struct
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from importlib.machinery import ModuleSpec, SourceFileLoader
from importlib.util import module_from_spec
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sortie.transports.local import confinement
else:
    # Beside this script, which has no packages to import from.
    _loader = SourceFileLoader("confinement", f"{os.path.dirname(__file__)}/confinement.py")
    confinement = module_from_spec(ModuleSpec("confinement", _loader))
    _loader.exec_module(confinement)

STATUS = struct.Struct("=qi")
"""What init writes to the pipe of statuses: the number of the request, and a wait status."""

NAMESPACE, PLAIN, INSIDE = b"namespace", b"plain", b"inside"
HEAD_FIELDS = 11  # before the arguments and the environment

_CLONE_NEWNS, _CLONE_NEWUSER, _CLONE_NEWPID = 0x20000, 0x10000000, 0x20000000
_CLONE_NEWNET = 0x40000000
_SIOCSIFFLAGS, _IFF_UP = 0x8914, 1
_MS_NOSUID, _MS_NODEV, _MS_NOEXEC, _MS_REC, _MS_PRIVATE = 2, 4, 8, 1 << 14, 1 << 18
_PR_SET_DUMPABLE, _PR_SET_NAME = 4, 15
_RESTORED = (
    signal.SIGINT,
    signal.SIGQUIT,  # a shell that is not interactive ignores it for what it starts with &
    signal.SIGTERM,
    signal.SIGHUP,
    signal.SIGPIPE,
    signal.SIGXFSZ,
)
_ENOENT = 2
_LONGEST_LINE = 256
_DESCRIPTORS = 5  # and one more for a program in a container
_libc = ctypes.CDLL(None, use_errno=True)


def encoded(
    number: int,
    mode: bytes,
    cgroup: str,
    program: str,
    cwd: str,
    argv: tuple[str, ...],
    env: Mapping[str, str],
    *,
    wrappers: int,
    stdin: int,
    port: int,
    entered: int = 0,
) -> bytes:
    """Return a request as the server reads it. ``cgroup`` is a file that the program's pid is
    written to before it is executed, or empty; in a container these are several, on lines.
    ``wrappers`` is as in a Command, ``stdin`` the descriptor at which the stdin is found, and
    ``port`` where to listen in a network of its own, 0 where the program has none. ``entered`` are
    the flags of the namespaces of its container."""
    words = [str(number).encode(), mode, *map(os.fsencode, (cgroup, program, cwd))]
    words += [str(one).encode() for one in (wrappers, stdin, port, entered, len(argv), len(env))]
    words += map(os.fsencode, argv)
    words += (os.fsencode(f"{name}={value}") for name, value in env.items())
    return b"\0".join(words)


class _Request:
    """A program to start; texts are bytes."""

    def __init__(self, fds: list[int]) -> None:
        self.file, self.report, *self.stdio = fds[:_DESCRIPTORS]
        self.containers = fds[_DESCRIPTORS:]
        with open(self.file, "rb") as file:
            words = file.read().split(b"\0")
        number, self.mode, self.cgroup, self.program, self.cwd = words[:5]
        self.number = int(number)
        numbers = map(int, words[5:HEAD_FIELDS])
        self.wrappers, self.stdin, self.port, self.entered, arguments, _ = numbers
        split = HEAD_FIELDS + arguments
        self.argv = words[HEAD_FIELDS:split]
        self.env = dict(word.split(b"=", 1) for word in words[split:])

    def tell(self, *words: object) -> None:
        """Add a line to the report, as long as there is a daemon to read it."""
        with suppress(BrokenPipeError):
            os.write(self.report, " ".join(map(str, words)).encode() + b"\n")


def _write(path: str | bytes, content: bytes) -> None:
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
        _write(f"/proc/self/{name}", text.encode())


def _listen(request: _Request) -> None:
    """Listen in this network, which has nothing but a loopback, and hand the socket on."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as listener:
        fcntl.ioctl(listener, _SIOCSIFFLAGS, struct.pack("16sh14x", b"lo", _IFF_UP))
        listener.bind(("127.0.0.1", request.port))
        listener.listen(128)
        with socket.socket(fileno=os.dup(request.report)) as report:
            socket.send_fds(report, [b"listener\n"], [listener.fileno()])


def _mount_proc(request: _Request) -> None:
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


def _spawn(request: _Request) -> int | None:
    """Start the program in a session of its own; return its pid, or report why there is none."""
    stdin, stdout, stderr = request.stdio
    actions: list[tuple[int, ...] | tuple[int, int, str, int, int]] = [
        (os.POSIX_SPAWN_DUP2, stdout, 1),
        (os.POSIX_SPAWN_DUP2, stderr, 2),
    ]
    actions.append((os.POSIX_SPAWN_DUP2, stdin, request.stdin))
    if request.stdin != 0:
        actions.append((os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0))
    step = "chdir"
    try:
        os.chdir(request.cwd)
        step = "exec"
        return os.posix_spawn(
            request.program,
            request.argv,
            request.env,
            file_actions=actions,
            setsid=True,
            setsigdef=_RESTORED,
        )
    except OSError as exc:
        request.tell("failed", step, exc.errno)
        return None
    finally:
        os.chdir("/")


def _spawn_confined(request: _Request) -> int | None:
    """Start the program in a session of its own, confined; return its pid, or report why not."""
    failure, failed = os.pipe()
    pid = os.fork()
    if pid == 0:
        _leave_after(lambda: _execute_confined(request, failed))
    os.close(failed)
    try:
        return None if os.read(failure, 1) else pid
    finally:
        os.close(failure)


def _execute_confined(request: _Request, failed: int) -> None:
    """Become the program; where it is not to be, report it and write a byte to ``failed``."""
    step = "chdir"
    try:
        os.setsid()
        os.chdir(request.cwd)
        for fd, number in zip(request.stdio, range(3), strict=True):
            os.dup2(fd, number)
        for restored in _RESTORED:
            signal.signal(restored, signal.SIG_DFL)
        step = "confine"
        confinement.confine()
        step = "exec"
        _execute(request)
    except OSError as exc:
        request.tell("failed", step, exc.errno)
        os.write(failed, b"!")


def _execute(request: _Request) -> None:
    """Execute the program; a plain name is looked up on the PATH that it is given."""
    programs = [request.program]
    if b"/" not in request.program:
        path = request.env.get(b"PATH", os.fsencode(os.defpath)).split(b":")
        programs = [b"%s/%s" % (entry, request.program) for entry in path if entry[:1] == b"/"]
    failure = OSError(_ENOENT, "")
    for program in programs:
        try:
            os.execve(program, request.argv, request.env)
        except (FileNotFoundError, NotADirectoryError):
            _tell_interpreter(request, program)
        except OSError as exc:
            failure = exc
    raise failure


def _tell_interpreter(request: _Request, program: bytes) -> None:
    """Report the interpreter of a script that is there: it is what could not be found."""
    with suppress(OSError), open(program, "rb") as file:
        words = file.readline(_LONGEST_LINE).split()
        if words and words[0][:2] == b"#!":
            name = words[0][2:] or b"".join(words[1:2])
            request.tell("interpreter", os.fsdecode(name))


def _leave_after(task: Callable[[], object]) -> None:
    """Do what this process was forked for, and end it, whatever happens; does not return."""
    try:
        task()
    except Exception:
        sys.excepthook(*sys.exc_info())
    finally:
        os._exit(1)


def _close(*fds: int) -> None:
    for fd in fds:
        os.close(fd)


def _be_init(request: _Request, daemon: int, statuses: int) -> None:
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

    woken = _wake_on_signals()
    signal.signal(signal.SIGTERM, pass_on)
    try:
        _mount_proc(request)
    except OSError as exc:
        request.tell("failed", "confine", exc.errno)
        return
    program = _spawn_confined(request) if request.mode == INSIDE else _spawn(request)
    if program is None:
        return
    if terminated:
        pass_on(signal.SIGTERM, None)
    _close(request.report, *request.stdio)
    poll = select.poll()
    for fd in (woken, daemon, *request.containers):
        poll.register(fd, select.POLLIN)
    while (ready := {fd for fd, _ in poll.poll()}) == {woken}:
        os.read(woken, 4096)
        for pid, status in _dead_children():
            if pid == program:
                _tell_status(request, status, statuses)
                return
    if daemon not in ready:  # the container has ended, and all that is here will be killed
        _tell_status(request, signal.SIGKILL, statuses)


def _tell_status(request: _Request, status: int, statuses: int) -> None:
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


def _wake_on_signals() -> int:
    """Return a descriptor that can be read when a signal has come."""
    woken, waker = os.pipe()
    os.set_blocking(waker, False)
    signal.set_wakeup_fd(waker, warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    return woken


def _dead_children() -> Iterator[tuple[int, int]]:
    """Reap the children that have ended; yield the pid and the wait status of each."""
    with suppress(ChildProcessError):
        while (dead := os.waitpid(-1, os.WNOHANG))[0] != 0:
            yield dead


def _mediate(request: _Request, daemon: int, statuses: int) -> None:
    """Start a program in namespaces of its own or without."""
    pid: int | None
    step = "unshare"
    # The server may not be traced, and nor may its forks: then files in /proc are root's, and a
    # /proc with hidepid= hides init from the daemon.
    _libc.prctl(_PR_SET_DUMPABLE, 1, 0, 0, 0)
    if request.cgroup and request.mode != INSIDE:
        try:
            _write(request.cgroup, b"0")
        except OSError as exc:
            request.tell("no-cgroup", exc.errno)
    try:
        if request.mode == PLAIN:
            pid = _spawn(request)
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
                _leave_after(lambda: _be_init(request, daemon, statuses))
    except OSError as exc:
        request.tell("failed", step, exc.errno)
    else:
        if pid is not None:
            request.tell("pid", pid)


def _serve(requests: socket.socket, statuses: int, daemon: int) -> None:
    woken = _wake_on_signals()
    reports: dict[int, int] = {}  # of the programs that are being started, by their middlemen
    poll = select.poll()
    poll.register(requests, select.POLLIN)
    poll.register(woken, select.POLLIN)
    while True:
        ready = [fd for fd, _ in poll.poll()]
        if woken in ready:
            os.read(woken, 4096)
            for pid, _ in _dead_children():
                os.close(reports.pop(pid))
        if requests.fileno() not in ready:
            continue
        size = socket.CMSG_LEN((_DESCRIPTORS + 1) * 4)
        data, control, _, _ = requests.recvmsg(1, size, socket.MSG_CMSG_CLOEXEC)
        if not data:
            return  # the daemon has ended
        fds = [fd for _, _, part in control for fd in struct.unpack(f"{len(part) // 4}i", part)]
        if len(fds) >= _DESCRIPTORS:
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
        _leave_after(lambda: _mediate(_Request(fds), daemon, statuses))
    reports[pid] = report
    _close(*(fd for fd in fds if fd != report))


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
            _write(sys.argv[5], b"0")
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (open_files, hard))
    gc.disable()
    gc.freeze()  # forked processes share what the collector would touch
    os.set_inheritable(requests, False)
    os.set_inheritable(statuses, False)
    _serve(socket.socket(fileno=requests), statuses, pidfd)


if __name__ == "__main__":
    _main()
