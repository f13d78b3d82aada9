"""The command line as a process: pipes, full disks, and what it loads."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from sortie import __version__
from tests.cli.world import SOURCE, WORKFLOW, is_ours, run_program

HEAVY = ("trio", "rich", "structlog", "starlette", "hypercorn", "jinja2", "psutil", "sqlite3")


def environment(*, buffered: bool = True) -> dict[str, str]:
    """What the process is started with."""
    kept = {key: value for key, value in os.environ.items() if not is_ours(key)}
    return kept | {"PYTHONPATH": str(SOURCE)} | ({} if buffered else {"PYTHONUNBUFFERED": "1"})


def test_it_runs_as_a_module() -> None:
    """``python -m sortie`` is the program, and its exit code arrives."""
    ran = run_program("version", "--format", "json")

    assert (ran.code, ran.err) == (0, "")
    assert json.loads(ran.out)["version"] == __version__
    assert run_program("nonsense").code == 2


def test_small_commands_load_little() -> None:
    """Showing the version loads neither the event loop nor the servers."""
    script = (
        "import sys; from sortie.cli.errors import run_command; run_command(['version']);"
        "print(*sorted(sys.modules), sep='\\n')"
    )

    done = subprocess.run(
        [sys.executable, "-c", script],
        env=environment(),
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )

    loaded = set(done.stdout.split())
    assert "sortie.cli.run" in loaded
    assert [name for name in (*HEAVY, "sortie.daemon") if name in loaded] == []


@pytest.mark.parametrize("buffered", [True, False])
@pytest.mark.parametrize("arguments", [["version"], ["--help"], ["validate", "W.md"]])
def test_a_reader_that_leaves_early_hears_nothing(
    here: Path, arguments: list[str], buffered: bool
) -> None:
    """A closed pipe is no traceback and no complaint about the pipe."""
    (here / "W.md").write_text(WORKFLOW.replace("kind: file", "kind: none"))
    read, write = os.pipe()
    os.close(read)

    done = subprocess.run(
        [sys.executable, "-m", "sortie", *arguments],
        env=environment(buffered=buffered),
        stdout=write,
        stderr=subprocess.PIPE,
        text=True,
        timeout=60,
        check=False,
    )
    os.close(write)

    assert (done.returncode, done.stderr) == (1, "")


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")
@pytest.mark.parametrize("buffered", [True, False])
@pytest.mark.parametrize("arguments", [["version"], ["--help"]])
def test_a_full_disk_is_one_line(arguments: list[str], buffered: bool) -> None:
    """Output that cannot be written is a failure that says so."""
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "sortie", *arguments],
            env=environment(buffered=buffered),
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            timeout=60,
            check=False,
        )

    assert done.returncode == 1
    assert done.stderr == "sortie: cannot write to standard output: No space left on device\n"


def test_an_encoding_that_lacks_characters_is_no_failure(here: Path) -> None:
    """An issue's letters are escaped where the terminal has none for them."""
    (here / "WORKFLOW.md").write_text(WORKFLOW)
    (here / "issues").mkdir()
    (here / "issues" / "A.md").write_text("---\ntitle: ünï\nstate: Todo\n---\n")

    done = subprocess.run(
        [sys.executable, "-m", "sortie", "render", "A"],
        env=environment() | {"PYTHONIOENCODING": "ascii"},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )

    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("Do A: \\xfcn\\xef\n")
