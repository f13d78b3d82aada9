"""Makes a PID namespace in a container of a remote host, and starts a program in it.

The host's python3 runs this, and nothing of it runs in the image. Beside it lie ``confinement``,
``container_limits``, ``container_programs`` and ``proxy_lead``.

``await PID WORD`` waits until the process that keeps a container is the shell with this word.
``make`` becomes what keeps a PID namespace, and its child the init of it. The init sees the
container's files; what keeps it has those of the host, and is not seen in the namespace.
``enter`` waits for the program, and ends as it does.

Rule 1: no variable of a program is one of this: the image may name any, such as LD_PRELOAD. They
come with the prefix VARIABLE.
Rule 2: nothing that a program of the container can see has a file of the host open.
"""

from __future__ import annotations

import ctypes
import fcntl
import os
import resource
import select
import signal
import struct
import sys
import threading
import time
from contextlib import suppress
from typing import TYPE_CHECKING, NoReturn

if TYPE_CHECKING:
    from sortie.transports.local.fork_server import confinement
    from sortie.transports.walls.on_host import container_programs
else:
    sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
    import confinement
    import container_programs

VARIABLE = "sortie_variable_"
PASSED_ON = ("SORTIE_RUN_ID", "HOME", "USER", "LOGNAME", "LANG", "LC_ALL", "LC_CTYPE", "TZ")
"""Variables that a program gets as they are, unless it has others."""

_NEWNS, _NEWPID, _NEWNET = 0x20000, 0x20000000, 0x40000000
_PR_SET_PDEATHSIG, _PR_SET_DUMPABLE, _PR_SET_NAME = 1, 4, 15
_MS_NOSUID, _MS_NODEV, _MS_NOEXEC, _MS_REC, _MS_PRIVATE = 2, 4, 8, 1 << 14, 1 << 18
_SIOCSIFFLAGS, _IFF_UP = 0x8914, 1
_PROXY_PORT = 3128
_START_BOUND = 30.0
_CGROUPS = f"{os.path.dirname(os.path.abspath(__file__))}/cgroups"
_libc = ctypes.CDLL(None, use_errno=True)


def main() -> None:
    """Do what the arguments say."""
    command, *words = sys.argv[1:]
    if command == "await":
        _await_keeper(int(words[0]), words[1])
    elif command == "make":
        keeper, ticks, cwd, path, program, proxy = words[:6]
        try:
            _make(_keeper(keeper, ticks), int(keeper), cwd, path, program, proxy)
        except OSError as error:
            _say(f"uncontained {error}")
    else:
        keeper, ticks, init, cwd, proxy, fifo, removed = words[:7]
        opened = fifo, removed
        try:
            _enter(_keeper(keeper, ticks), int(keeper), int(init), cwd, proxy, opened, words[7:])
        except OSError as error:
            os.write(2, f"could not start {words[7]} in its container: {error}\n".encode())
            os._exit(126)


def _await_keeper(pid: int, word: str) -> None:
    """Tell the start of a process once it has a word among its arguments, and in how many cgroups
    of its own it is."""
    until = time.monotonic() + _START_BOUND
    with suppress(OSError):
        while time.monotonic() < until:
            ticks = _ticks(pid)
            with open(f"/proc/{pid}/cmdline", "rb") as file:
                if word.encode() in file.read():
                    _say(f"{ticks} {_note_cgroups(pid)}")
                    return
            time.sleep(0.01)
    sys.exit("it ended as soon as it had begun; has its image a sh?")


def _note_cgroups(pid: int) -> int:
    """Write down the files by which a process enters the cgroups of another, for those who do; what
    finds them takes long to be loaded. Return how many there are."""
    if TYPE_CHECKING:
        from sortie.transports.walls import container_limits
    else:
        import container_limits
    found = container_limits.files_of_limits(pid)
    with open(_CGROUPS, "w", encoding="utf-8", errors="surrogateescape") as file:
        file.writelines(f"{one}\n" for one in found)
    return len(found)


def _keeper(pid: str, ticks: str) -> int:
    """Return a pidfd of the process that keeps a container. Raises OSError."""
    pidfd = os.pidfd_open(int(pid))
    if _ticks(int(pid)) != ticks:
        raise ProcessLookupError("its container has ended")
    return pidfd


def _ticks(pid: int) -> str:
    with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
        return file.read().rpartition(")")[2].split()[19]


def _namespaces(pid: int) -> int:
    """Return the flags of the namespaces that a process does not share with this one."""
    flags = 0
    for name, flag in confinement.NAMESPACES.items():
        theirs, ours = (os.stat(f"/proc/{one}/ns/{name}") for one in (pid, "self"))
        flags |= 0 if theirs.st_ino == ours.st_ino else flag
    return flags


def _join(keeper: int, pid: int, proxy: str) -> None:
    """Enter the container, but for its files and, where there is a proxy, its network."""
    left_out = _NEWNS | (_NEWNET if proxy else 0)
    with open(_CGROUPS, "rb") as file:
        cgroups = file.read().splitlines()
    confinement.enter(keeper, _namespaces(pid) & ~left_out, cgroups)


def _checked(result: int) -> None:
    if result != 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


def _end_with(parent: int) -> None:
    """End with the process of a pidfd, which is this one's parent."""
    _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if select.select([parent], [], [], 0)[0]:
        os._exit(1)


def _make(keeper: int, pid: int, cwd: str, path: str, program: str, proxy: str) -> None:
    """Make a namespace, say "ready", and keep it. What goes wrong is said instead, or raised as
    OSError."""
    watchdog, us = os.pidfd_open(os.getppid()), os.pidfd_open(os.getpid())
    _join(keeper, pid, proxy)
    _end_with(watchdog)  # entering a user namespace has undone it
    door = None
    if proxy:
        if TYPE_CHECKING:
            from sortie.transports.walls.on_host import proxy_lead
        else:
            import proxy_lead
        _checked(_libc.unshare(_NEWNET))
        door = proxy_lead.listen(_PROXY_PORT)
        fcntl.ioctl(door, _SIOCSIFFLAGS, struct.pack("16sh14x", b"lo", _IFF_UP))
        # A process that has a PID namespace for its children makes no thread any more.
        threading.Thread(target=proxy_lead.lead, args=(door, proxy), daemon=True).start()
    _checked(_libc.unshare(_NEWPID))
    init = os.fork()
    if init == 0:
        _be_init(keeper, us, cwd, path, program, [] if door is None else [door.fileno()])
    os.close(1)
    os.waitpid(init, 0)


def _say(line: str) -> None:
    """Say one line to who waits for the namespace."""
    with suppress(OSError):
        os.write(1, line.replace("\n", " ").encode() + b"\n")


def _be_init(
    keeper: int, parent: int, cwd: str, path: str, program: str, closed: list[int]
) -> NoReturn:
    try:
        _end_with(parent)
        os.setsid()
        for fd in closed:
            os.close(fd)
        _libc.prctl(_PR_SET_NAME, b"sortie-init", 0, 0, 0)
        _checked(_libc.setns(keeper, _NEWNS))
        _checked(_libc.unshare(_NEWNS))
        _mount_proc()
        container_programs.look_for(program, path, cwd)
        # Who has entered the container may enter this namespace; its programs have no capability.
        _libc.prctl(_PR_SET_DUMPABLE, 1, 0, 0, 0)
        woken, waker = os.pipe()
        os.set_blocking(waker, False)
        signal.set_wakeup_fd(waker, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        _say("ready")
        null = os.open("/dev/null", os.O_RDWR)
        for number in range(3):
            os.dup2(null, number)
        while select.select([woken, keeper, parent], [], [])[0] == [woken]:
            os.read(woken, 4096)
            with suppress(ChildProcessError):
                while os.waitpid(-1, os.WNOHANG)[0]:
                    pass
    except container_programs.NotStartable as refused:
        _say(str(refused))
    except OSError as error:
        _say(f"uncontained {error}")
    finally:
        os._exit(0)


def _mount_proc() -> None:
    flags = _MS_NOSUID | _MS_NODEV | _MS_NOEXEC
    _checked(_libc.mount(None, b"/", None, _MS_REC | _MS_PRIVATE, None))
    _checked(_libc.mount(b"proc", b"/proc", b"proc", flags, None))
    confinement.close_proc()


def _enter(
    keeper: int, pid: int, init: int, cwd: str, proxy: str, fifo: tuple[str, str], argv: list[str]
) -> None:
    """Start a program in the namespace of an init, wait for it, and end as it does."""
    variables = _variables()
    inits = os.pidfd_open(init)
    _join(keeper, pid, proxy)
    _checked(_libc.setns(inits, _NEWPID | (_NEWNET if proxy else 0)))
    program = os.fork()
    if program == 0:
        try:
            _become(inits, cwd, fifo, argv, variables)
        except OSError as error:
            os.write(2, f"could not start {argv[0]}: {error}\n".encode())
        finally:
            os._exit(127)
    _end_as(program)


def _variables() -> dict[str, str]:
    """Return the environment of the program."""
    own = {name: os.environ[name] for name in PASSED_ON if name in os.environ}
    given = (item for item in os.environ.items() if item[0].startswith(VARIABLE))
    return own | {name[len(VARIABLE) :]: value for name, value in given}


def _become(
    inits: int, cwd: str, fifo: tuple[str, str], argv: list[str], variables: dict[str, str]
) -> None:
    os.setsid()
    path, removed = fifo
    if path:
        stdin = os.open(path, os.O_RDONLY)
        os.dup2(stdin, 0)
    if removed:
        os.unlink(path)
        os.rmdir(os.path.dirname(path))
    _checked(_libc.setns(inits, _NEWNS))
    os.chdir(cwd)
    os.closerange(3, resource.getrlimit(resource.RLIMIT_NOFILE)[0])
    for number in (signal.SIGINT, signal.SIGQUIT, signal.SIGTERM, signal.SIGHUP, signal.SIGPIPE):
        signal.signal(number, signal.SIG_DFL)
    signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
    confinement.confine()
    failure: OSError = FileNotFoundError(2, "it does not exist in the container")
    for program in container_programs.candidates(argv[0], variables.get("PATH", os.defpath)):
        try:
            os.execve(program, argv, variables)
        except FileNotFoundError:
            pass
        except OSError as error:
            failure = error
    raise failure


def _end_as(program: int) -> None:
    """Wait for a program, stop where it stops, and end as it ends."""
    while True:
        _, status = os.waitpid(program, os.WUNTRACED)
        if not os.WIFSTOPPED(status):
            break
        os.kill(os.getpid(), signal.SIGSTOP)
        os.kill(program, signal.SIGCONT)
    if os.WIFSIGNALED(status):
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        number = os.WTERMSIG(status)
        with suppress(OSError):
            signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)
    os._exit(os.WEXITSTATUS(status))


if __name__ == "__main__":
    main()
