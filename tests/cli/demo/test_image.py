"""The image of a demo's containers, and the engine that makes them."""

from __future__ import annotations

import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

from sortie.cli.demo.directory import make_demo
from sortie.cli.demo.image import IMAGE, seen_inside, write_archive, write_engine_program
from sortie.daemon.options import RunOptions
from sortie.daemon.workflow_file import load_workflow
from tests.cli.conftest import Cli


def test_the_image_has_directories_alone(tmp_path: Path) -> None:
    """And the links of this system into /usr; no file of this machine is in it."""
    write_archive(tmp_path / "image.tar")

    with tarfile.open(tmp_path / "image.tar") as archive:
        kinds = {entry.name: entry.isdir() or entry.issym() for entry in archive}
    assert {"usr", "etc", "tmp", "home", "bin"} <= kinds.keys()
    assert all(kinds.values())


def test_a_workflow_names_the_engine_and_what_is_seen(tmp_path: Path) -> None:
    """The interpreter is seen, and nothing twice."""
    made = make_demo(tmp_path / "demo", sandbox="podman")
    sandbox = load_workflow(RunOptions(workflow=made.workflow, environ={})).settings.sandbox

    assert (sandbox.kind, sandbox.image, sandbox.network) == ("container", IMAGE, "none")
    assert sandbox.engine == str(made.directory / "data" / "podman")
    assert any(sys.prefix == p or sys.prefix.startswith(f"{p}/") for p in sandbox.read)
    assert not [p for p in seen_inside(tmp_path) if p.startswith("/usr/")]


@pytest.mark.parametrize("usual", [None, "/somewhere else"])
def test_podman_finds_its_images_where_it_always_does(tmp_path: Path, usual: str | None) -> None:
    """XDG_DATA_HOME is the simulator's in a demo."""
    podman = tmp_path / "podman"
    podman.write_text('#!/bin/sh\necho "${XDG_DATA_HOME-none} $*"\n')
    podman.chmod(0o755)
    environ = {"PATH": f"{tmp_path}:/usr/bin:/bin"}
    write_engine_program(
        "podman", tmp_path, environ | ({} if usual is None else {"XDG_DATA_HOME": usual})
    )

    said = subprocess.run(
        [tmp_path / "data" / "podman", "run", "a b"],
        env=environ | {"XDG_DATA_HOME": "/demo/data"},
        capture_output=True,
        text=True,
        check=True,
    )

    assert said.stdout == f"{usual or 'none'} run a b\n"


def test_containers_are_for_simulated_agents(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A real one needs an image with its program; nothing is made, neither is without an engine."""
    real = cli("demo", str(tmp_path / "demo"), "--sandbox", "podman", "--agent", "claude-code")
    monkeypatch.setenv("PATH", str(tmp_path))
    missing = cli("demo", str(tmp_path / "demo"), "--sandbox", "podman")

    assert real.code == 2
    assert "needs an image with its program" in real.err
    assert missing.code == 1
    assert "there is no podman on the PATH" in missing.err
    assert not (tmp_path / "demo").exists()
