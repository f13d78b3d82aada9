"""Starts the program of a request, as a child of the process that is to reap it."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from contextlib import suppress

TYPE_CHECKING = False
if TYPE_CHECKING:
    from sortie.transports.local.fork_server import confinement
    from sortie.transports.local.fork_server.request import Request
else:
    import confinement
    from request import Request

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


def spawn(request: Request) -> int | None:
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


def spawn_confined(request: Request) -> int | None:
    """Start the program in a session of its own, confined; return its pid, or report why not."""
    failure, failed = os.pipe()
    pid = os.fork()
    if pid == 0:
        leave_after(lambda: _execute_confined(request, failed))
    os.close(failed)
    try:
        return None if os.read(failure, 1) else pid
    finally:
        os.close(failure)


def _execute_confined(request: Request, failed: int) -> None:
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


def _execute(request: Request) -> None:
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


def _tell_interpreter(request: Request, program: bytes) -> None:
    """Report the interpreter of a script that is there: it is what could not be found."""
    with suppress(OSError), open(program, "rb") as file:
        words = file.readline(_LONGEST_LINE).split()
        if words and words[0][:2] == b"#!":
            name = words[0][2:] or b"".join(words[1:2])
            request.tell("interpreter", os.fsdecode(name))


def leave_after(task: Callable[[], object]) -> None:
    """Do what this process was forked for, and end it, whatever happens; does not return."""
    try:
        task()
    except Exception:
        sys.excepthook(*sys.exc_info())
    finally:
        os._exit(1)
