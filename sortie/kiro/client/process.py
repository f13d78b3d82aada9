"""One process of kiro-cli: its input, its output, its end and the end of all that it started.

Rule 1: nothing of its tree outlives the end of ``run`` or ``stop``, whichever came last.
Rule 2: the process is not reaped before its tree is gone, so that its number, which is that of its
group, is not given to another process. Rule 3: no more than a limit of its output is held.
"""

from __future__ import annotations

import logging
import os
import selectors
import subprocess
import time
from collections.abc import Callable, Mapping
from typing import IO, Any

import psutil
from msgspec import Struct

from sortie.kiro.client.errors import CLIConnectionError, CLINotFoundError, TurnTimeoutError
from sortie.kiro.client.process_tree import TurnProcessTree
from sortie.kiro.client.waits import Wait, Waits
from sortie.model.hiding import repr_without

STDOUT_LIMIT = 64 * 1024 * 1024
"""Bytes of stdout that a turn may have."""

STDERR_KEPT = 1024 * 1024
"""Bytes at the end of stderr that are kept."""

_log = logging.getLogger("sortie.kiro")

_CHUNK = 64 * 1024
_POLL = 0.05  # seconds between looks at a process whose end no descriptor tells
_LAST_OUTPUT = 1.0  # seconds to wait for a foreign process that holds the output open


class KiroLaunch(Struct, frozen=True, kw_only=True):
    """What is started. ``stdin`` None is an empty one; ``limit`` is in seconds."""

    argv: tuple[str, ...]
    cwd: str
    environment: Mapping[str, str]
    stdin: bytes | None = None
    limit: float | None = None
    grace: float = 5.0

    __repr__ = repr_without("argv", "environment", "stdin")


class KiroExit(Struct, frozen=True, kw_only=True):
    """How it ended. ``status`` is negative for a signal, None where another has reaped it."""

    status: int | None
    stdout: bytes
    stderr: str

    __repr__ = repr_without("stdout", "stderr")


class KiroProcess:
    """A process that was started. ``on_stderr`` is told of each chunk; what it raises ends ``run``.

    The constructor raises CLINotFoundError and CLIConnectionError.
    """

    def __init__(
        self, launch: KiroLaunch, on_stderr: Callable[[bytes], object] = lambda _: None
    ) -> None:
        self._launch = launch
        self._on_stderr = on_stderr
        self._stdout = bytearray()
        self._stderr = bytearray()
        self._unwritten = memoryview(launch.stdin or b"")
        self._exited = False
        self._gone = False
        self._tree = TurnProcessTree()
        self._selector = selectors.DefaultSelector()
        self._deadline = None if launch.limit is None else time.monotonic() + launch.limit
        self._root = _start(launch, self._tree)
        self._tree.begin(self._root.pid)
        self._watch_end()
        self._watch(self._root.stdout, selectors.EVENT_READ, self._take_stdout)
        self._watch(self._root.stderr, selectors.EVENT_READ, self._take_stderr)
        if self._root.stdin is not None:
            self._watch(self._root.stdin, selectors.EVENT_WRITE, self._write)

    def run(self) -> Waits[KiroExit]:
        """Wait until it has ended, and end what it leaves behind.

        Raises TurnTimeoutError, and CLIConnectionError where it prints too much; ``stop`` it then.
        """
        while not self._exited:
            yield Wait(self._pause(), self._selector)
            self._advance()
            if not self._exited and self._is_late():
                raise TurnTimeoutError(
                    f"kiro-cli was not done after {self._launch.limit:g} s (timeout)"
                )
        yield from self._end_tree()
        yield from self._drain()
        return self._finish()

    def stop(self) -> Waits[None]:
        """End it and all that it started: SIGTERM, the grace time, SIGKILL. Idempotent."""
        if not self._gone:
            yield from self._end_tree()
            self._finish()

    def kill(self) -> None:
        """Kill it and all that it started, without waiting for them to be gone."""
        if not self._gone:
            self._tree.kill()
            self._finish()

    def _end_tree(self) -> Waits[None]:
        if not (yield from self._tree.end(self._launch.grace)):
            _log.warning("processes of kiro-cli do not end; its pid was %d", self._root.pid)

    def _pause(self) -> float | None:
        pauses = [] if self._end_is_told else [_POLL]
        if self._deadline is not None:
            pauses.append(max(0.0, self._deadline - time.monotonic()))
        return min(pauses, default=None)

    def _is_late(self) -> bool:
        return self._deadline is not None and time.monotonic() >= self._deadline

    def _advance(self) -> None:
        """Take what has come, and give what is wanted, without waiting."""
        for key, _ in self._selector.select(0):
            key.data()
        if not self._end_is_told:
            self._look_at_root()

    def _drain(self) -> Waits[None]:
        """Take what is left of the output."""
        deadline = time.monotonic() + _LAST_OUTPUT
        while self._outputs_open() and time.monotonic() < deadline:
            yield Wait(max(0.0, deadline - time.monotonic()), self._selector)
            self._advance()

    def _outputs_open(self) -> bool:
        return any(key.events & selectors.EVENT_READ for key in self._selector.get_map().values())

    def _finish(self) -> KiroExit:
        """Reap it and close everything."""
        status = _reap(self._root)
        self._gone = True
        self._selector.close()
        for stream in (self._root.stdin, self._root.stdout, self._root.stderr):
            if stream is not None:
                stream.close()
        if self._end_is_told:
            os.close(self._end)
        stderr = self._stderr.decode(errors="replace")
        return KiroExit(status=status, stdout=bytes(self._stdout), stderr=stderr)

    def _watch_end(self) -> None:
        """Have the selector tell when the process has ended, where the system can."""
        try:
            self._end = os.pidfd_open(self._root.pid)
        except (AttributeError, OSError):
            self._end_is_told = False
            return
        self._end_is_told = True
        self._selector.register(self._end, selectors.EVENT_READ, self._note_end)

    def _watch(self, stream: IO[bytes] | None, events: int, act: Callable[[], Any]) -> None:
        assert stream is not None
        os.set_blocking(stream.fileno(), False)
        self._selector.register(stream, events, act)

    def _note_end(self) -> None:
        self._exited = True
        self._selector.unregister(self._end)

    def _look_at_root(self) -> None:
        self._exited = self._exited or _has_ended(self._root.pid)

    def _take_stdout(self) -> None:
        chunk = self._read(self._root.stdout)
        self._stdout += chunk
        if len(self._stdout) > STDOUT_LIMIT:
            raise CLIConnectionError(f"kiro-cli printed more than {STDOUT_LIMIT} bytes")

    def _take_stderr(self) -> None:
        chunk = self._read(self._root.stderr)
        self._stderr += chunk
        del self._stderr[:-STDERR_KEPT]
        self._on_stderr(chunk)

    def _read(self, stream: IO[bytes] | None) -> bytes:
        assert stream is not None
        try:
            chunk = os.read(stream.fileno(), _CHUNK)
        except BlockingIOError:
            return b""
        if not chunk:
            self._selector.unregister(stream)
        return chunk

    def _write(self) -> None:
        stdin = self._root.stdin
        assert stdin is not None
        try:
            self._unwritten = self._unwritten[os.write(stdin.fileno(), self._unwritten[:_CHUNK]) :]
        except BlockingIOError:
            return
        except OSError:  # it reads no further
            self._unwritten = self._unwritten[:0]
        if not self._unwritten:
            self._selector.unregister(stdin)
            stdin.close()


def _start(launch: KiroLaunch, tree: TurnProcessTree) -> subprocess.Popen[bytes]:
    program = launch.argv[0]
    try:
        return subprocess.Popen(
            launch.argv,
            stdin=subprocess.DEVNULL if launch.stdin is None else subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            bufsize=0,
            cwd=launch.cwd,
            env=tree.environment(launch.environment),
            start_new_session=True,
        )
    except FileNotFoundError as exc:
        raise CLINotFoundError(f"{program!r} could not be started: {exc.strerror}") from exc
    except (OSError, ValueError) as exc:
        raise CLIConnectionError(f"{program!r} could not be started: {exc}") from exc


def _has_ended(pid: int) -> bool:
    """Tell whether a child has ended, without reaping it."""
    try:
        if hasattr(os, "waitid"):  # macOS has it since Python 3.13 only
            ended = os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
            return ended is not None
        return psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
    except (ChildProcessError, psutil.Error):  # another part of this program has reaped it
        return True


def _reap(root: subprocess.Popen[bytes]) -> int | None:
    """Return the exit status; None where another has taken it, or where it does not die."""
    try:
        pid, status = os.waitpid(root.pid, os.WNOHANG)
    except ChildProcessError:
        root.returncode = 0  # or Popen would wait for it
        return None
    if pid == root.pid:
        root.returncode = os.waitstatus_to_exitcode(status)
    return root.returncode
