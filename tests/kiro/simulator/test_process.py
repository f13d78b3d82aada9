"""The simulator as a process: signals, speed, writers at the same time."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import sortie

ROOT = str(Path(sortie.__file__).parent.parent)


def environment(tmp_path: Path, **more: str) -> dict[str, str]:
    home = {"HOME": str(tmp_path), "XDG_DATA_HOME": str(tmp_path / "data")}
    return {"PATH": os.defpath, "PYTHONPATH": ROOT, "KIRO_API_KEY": "sk-1", **home, **more}


@contextmanager
def started(tmp_path: Path, *arguments: str, **more: str) -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen(
        [sys.executable, "-m", "sortie.kiro.simulator", *arguments],
        cwd=tmp_path,
        env=environment(tmp_path, **more),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate(timeout=10)


def chat(prompt: str) -> tuple[str, ...]:
    return ("chat", "--no-interactive", "--trust-tools=", prompt)


@pytest.mark.parametrize("name", ["SIGTERM", "SIGKILL", "SIGSEGV", "SIGINT"])
def test_it_dies_by_a_signal(name: str, tmp_path: Path) -> None:
    """The process ends by the very signal, in the middle of its answer, without a trailer."""
    with started(tmp_path, *chat(f"sim: signal={name}")) as process:
        out, err = process.communicate(timeout=20)

    assert process.returncode == -signal.Signals[name]
    assert out.startswith(b"\x1b[38;5;141m> ")
    assert b"Credits" not in err


def test_without_a_key_it_waits_for_a_login(tmp_path: Path) -> None:
    """It prints a link and stays, which is why sessions have a preflight."""
    with started(tmp_path, *chat("Hello"), KIRO_API_KEY="") as process:
        assert process.stdout
        lines = [process.stdout.readline() for _ in range(3)]
        running = process.poll() is None

    assert b"Open this URL: https://" in lines[1]
    assert running


@pytest.mark.skipif(sys.platform != "linux", reason="what others see of an environment is Linux's")
@pytest.mark.parametrize("kind", ["cleared", "overwritten"])
def test_a_child_may_hide_its_environment(kind: str, tmp_path: Path) -> None:
    """Nothing in it names the run, and neither parent nor session leads there."""
    log = tmp_path / "log"
    with started(tmp_path, *chat(f"sim: child={kind} log={log}"), SORTIE_RUN_ID="run-1") as process:
        status = process.wait(timeout=20)
        pid = child_pid(log)
        try:
            while not (seen := Path(f"/proc/{pid}/cmdline").read_bytes()):
                pass  # it becomes another program
            hidden = b"SORTIE" not in Path(f"/proc/{pid}/environ").read_bytes()
            own_session = os.getsid(pid) != os.getsid(0)
        finally:
            os.kill(pid, signal.SIGKILL)

    assert (status, hidden, own_session) == (0, True, True), seen


def test_a_child_needs_a_run_id(tmp_path: Path) -> None:
    """No process is left where nobody could find it again."""
    with started(tmp_path, *chat("sim: child=setsid")) as process:
        _, err = process.communicate(timeout=20)

    assert process.returncode == 1
    assert b"SORTIE_RUN_ID is not set" in err


def child_pid(log: Path) -> int:
    """Wait for the child's line in the log; its reader is the only other process here."""
    with subprocess.Popen(["tail", "-n", "+1", "-f", str(log)], stdout=subprocess.PIPE) as tail:
        assert tail.stdout
        for line in tail.stdout:
            if (event := json.loads(line))["event"] == "child":
                tail.kill()
                return int(event["child_pid"])
    raise AssertionError("no child was logged")


def test_it_starts_with_the_standard_library_only(tmp_path: Path) -> None:
    """Nothing slow is imported for a turn, or fifty agents at once would start slowly."""
    code = "import sys, sortie.kiro.simulator; print(*sys.modules)"

    done = subprocess.run(
        [sys.executable, "-S", "-c", code],
        env=environment(tmp_path),
        capture_output=True,
        text=True,
        timeout=20,
        check=True,
    )

    heavy = {"trio", "pydantic", "typer", "psutil", "typing", "dataclasses", "uuid", "sqlite3"}
    assert heavy & set(done.stdout.split()) == set()


def test_without_standard_streams_it_does_its_work(tmp_path: Path) -> None:
    """A turn that was started without stdin, stdout and stderr leaves its note all the same."""
    script = 'exec "$0" -m sortie.kiro.simulator "$@" <&- >&- 2>&-'

    done = subprocess.run(
        ["sh", "-c", script, sys.executable, *chat("Hello")],
        cwd=tmp_path,
        env=environment(tmp_path),
        timeout=60,
        check=False,
    )

    assert done.returncode == 0
    assert (tmp_path / "SORTIE_DEMO.md").exists()
