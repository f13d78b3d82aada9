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


def loaded_by(*arguments: str, code: int = 0) -> set[str]:
    """Return the modules that a command has imported at its end, and their packages."""
    script = (
        "import sys; from sortie.cli import main\n"
        "try: main()\n"
        "finally: print(*sorted(sys.modules), file=sys.stderr)"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, *arguments],
        env=environment(),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == code, done.stderr
    return set(done.stderr.splitlines()[-1].split())


LOOKING = ("pydantic", *(["dataclasses"] if sys.version_info < (3, 14) else []))
"""Later versions load dataclasses for the colours of argparse."""
SERVING = ("starlette", "hypercorn", "h11", "prometheus_client")
RUNNING = ("trio", "asyncio", "asyncssh", "psutil", "sqlite3", "structlog", "sortie.scheduler")
ASKING = ("httpx2", "httpcore2", "jwt", "cryptography", "sortie.http.client")
PRINTING = ("rich", "pygments")
TRACING = ("opentelemetry", "google.protobuf", "sortie.telemetry.traces")


@pytest.mark.parametrize("arguments", [("--version",), ("--help",), ("status", "--help")])
def test_help_and_version_load_next_to_nothing(arguments: tuple[str, ...]) -> None:
    """They need neither the settings nor what a daemon runs on."""
    loaded = loaded_by(*arguments)

    assert loaded & {*LOOKING, *SERVING, *RUNNING, *PRINTING, "jinja2", "yaml"} == set()


def test_a_command_loads_no_other() -> None:
    """A command's module is imported when it is the one that is asked for."""
    loaded = loaded_by("version")

    assert "sortie.cli.version" in loaded
    assert "sortie.cli.run" not in loaded
    assert loaded & {*SERVING, *RUNNING, *PRINTING, "jinja2", "yaml", "sortie.daemon"} == set()


def test_the_status_of_a_daemon_needs_no_event_loop(here: Path) -> None:
    """To find a daemon is to read one path of the workflow file, and what the daemon wrote."""
    (here / "WORKFLOW.md").write_text(WORKFLOW)

    loaded = loaded_by("status", code=1)

    assert "sortie.daemon.endpoint_file" in loaded
    heavy = {*SERVING, "trio", "asyncio", "structlog", *PRINTING, *ASKING, "pydantic", "jinja2"}
    assert loaded & heavy == set()


def test_validating_loads_no_daemon(here: Path) -> None:
    """Reading a workflow file needs neither an event loop nor what a daemon runs on."""
    (here / "W.md").write_text(WORKFLOW)

    loaded = loaded_by("validate", "W.md")

    assert {"sortie.config", "jinja2", "sortie.trackers.file", "sortie.agents.kiro"} <= loaded
    assert loaded & {*SERVING, *RUNNING, *PRINTING, *ASKING, "ruamel", "ssl"} == set()


def test_validating_a_tracker_over_http_loads_no_client(here: Path) -> None:
    """Its settings are checked without what it is asked with."""
    github = "kind: github\n  project: o/r\n  api_key: $HOME"
    (here / "W.md").write_text(WORKFLOW.replace("kind: file", github))

    loaded = loaded_by("validate", "W.md")

    assert {"sortie.trackers.github.settings", "sortie.trackers.linear"} <= loaded
    assert loaded & {*RUNNING, *ASKING, "ssl"} == set()


def test_a_daemon_without_hosts_and_server_loads_neither(here: Path) -> None:
    """What SSH, HTTP, metrics and traces need is loaded where they are wanted."""
    soon = "file:\n", "polling:\n  interval_ms: 1000\nfile:\n"  # it leaves after two polls
    (here / "WORKFLOW.md").write_text(WORKFLOW.replace(*soon, 1))
    (here / "issues").mkdir()

    loaded = loaded_by("run", "--port", "0", "--exit-when-idle")

    assert {"sortie.orchestrator.loop", "sortie.trackers.file.tracker"} <= loaded
    unwanted = {*SERVING, *PRINTING, "asyncssh", "cryptography", "ruamel", *TRACING}
    assert loaded & unwanted == set()


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
    assert "\nDo A: \\xfcn\\xef\n" in done.stdout
