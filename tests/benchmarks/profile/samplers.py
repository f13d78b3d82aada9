"""The programs that look on at a daemon; each ends with its block and leaves what it saw.

None of them belongs to the project or its tests.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

_PATIENCE = 10.0
_UNREADABLE = re.compile(r"Samples: \d+ Errors: (\d+)")
_NOTHING = "No stack counts found"


def program(name: str) -> str | None:
    """Return the path of one of these programs, None where it is not installed."""
    beside = Path(sys.executable).parent
    return shutil.which(name, path=f"{beside}{os.pathsep}{os.environ.get('PATH', os.defpath)}")


class Looks:
    """What one program saw in all windows: ``texts`` are its words, one for each window."""

    def __init__(self, directory: Path, rate: int) -> None:
        self.directory = directory
        self.rate = rate
        self.texts: list[str] = []
        self.unreadable = 0
        """Samples that could not be taken, because the interpreter went on meanwhile."""

    @contextmanager
    def of_py_spy(self, pid: int) -> Iterator[None]:
        """Sample who holds the interpreter's lock, without stopping the process for it.

        Where a process is stopped for each sample, the samples come to several times its clock.
        """
        out = self.directory / "stacks"
        words = ("--gil", "--nonblocking", "--threads", "--format", "raw", "--rate", str(self.rate))
        argv = ["record", "--pid", str(pid), *words, "--output", str(out)]
        with _running("py-spy", argv, "Sampling process") as rest:
            yield
        said = "".join(rest)
        if not out.exists():  # in a short window nobody may have been seen
            if _NOTHING not in said:
                raise RuntimeError(f"py-spy took no samples: {said}")
            return
        self.unreadable += sum(map(int, _UNREADABLE.findall(said)))
        self.texts.append(out.read_text())
        out.unlink()

    @contextmanager
    def of_perf(self, pid: int) -> Iterator[None]:
        """Sample what the processor runs for it, the kernel included."""
        out, orders, answers = (self.directory / name for name in ("perf", "orders", "answers"))
        for fifo in (orders, answers):
            os.mkfifo(fifo)
        ends = [os.open(fifo, os.O_RDWR) for fifo in (orders, answers)]
        words = ("-e", "cpu-clock", "-g", "-F", str(self.rate), "-o", str(out), "-p", str(pid))
        control = ("--delay=-1", f"--control=fifo:{orders},{answers}")
        try:
            with _running("perf", ["record", *words, *control], None):
                os.write(ends[0], b"enable\n")
                os.read(ends[1], 16)
                yield
        finally:
            for end in ends:
                os.close(end)
            orders.unlink()
            answers.unlink()
        told = ["script", "-i", str(out), "-F", "pid,tid,ip,sym,dso"]
        done = subprocess.run([_path("perf"), *told], capture_output=True, text=True, check=True)
        of_daemon = [
            text for text in done.stdout.split("\n\n") if text.split("/")[0].strip() == str(pid)
        ]
        self.texts.append("\n\n".join(of_daemon))
        out.unlink()

    @contextmanager
    def of_strace(self, pid: int) -> Iterator[None]:
        """Count the system calls of the threads that it has at the beginning; each then takes
        several times as long. What they start is not followed, as agents would be counted too."""
        out = self.directory / "calls"
        threads = [word for tid in os.listdir(f"/proc/{pid}/task") for word in ("-p", tid)]
        argv = ["-qq", "-c", "-U", "calls,name", "-o", str(out), *threads]
        with _running("strace", argv, None):
            _await_tracer(pid)
            yield
        self.texts.append(out.read_text())
        out.unlink()


def _path(name: str) -> str:
    path = program(name)
    assert path is not None, f"there is no {name}"
    return path


@contextmanager
def _running(name: str, argv: list[str], ready: str | None) -> Iterator[list[str]]:
    """Run a program until the end of the block, from when it says that it is ready; give a list
    that has the rest of what it says afterwards."""
    one = subprocess.Popen(
        [_path(name), *argv], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    assert one.stdout is not None
    rest: list[str] = []
    try:
        if ready is not None:
            _await(one.stdout, ready, name)
        yield rest
        one.send_signal(signal.SIGINT)
        rest.append(one.communicate(timeout=60)[0])
    finally:
        one.kill()
        one.wait()


def _await_tracer(pid: int) -> None:
    until = time.monotonic() + _PATIENCE
    while "TracerPid:\t0\n" in Path(f"/proc/{pid}/status").read_text():
        if time.monotonic() > until:
            raise RuntimeError("strace does not begin")
        time.sleep(0.01)


def _await(output: IO[str], ready: str, name: str) -> None:
    said = []
    for line in output:
        said.append(line)
        if ready in line:
            return
    raise RuntimeError(f"{name} does not begin: {''.join(said)}")
