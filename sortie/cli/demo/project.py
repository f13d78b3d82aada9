"""The repository of a demo: a program with a test that fails, in a bare repository."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from importlib.resources import files
from pathlib import Path

from sortie.model import SortieError

PROJECT = "project.git"
_WHO = ("-c", "user.name=Sortie demo", "-c", "user.email=demo@localhost")


def make_project(directory: Path) -> Path | None:
    """Make the repository, unless it is there; None where there is no git. Raises SortieError."""
    if shutil.which("git") is None:
        return None
    bare = directory.absolute() / PROJECT
    if bare.exists():
        return bare
    with tempfile.TemporaryDirectory(dir=bare.parent, prefix=".project-") as place:
        tree, made = Path(place, "tree"), Path(place, PROJECT)
        tree.mkdir()
        for source in files("sortie.cli.demo").joinpath("directory", "project").iterdir():
            if source.is_file():
                name = source.name.removesuffix(".txt")
                (tree / name).write_text(source.read_text(encoding="utf-8"))
        _git(tree, "init", "-q")
        _git(tree, "add", "-A")
        commit = ("-c", "commit.gpgSign=false", "commit", "-q", "--no-verify", "-m", "Begin")
        _git(tree, *_WHO, *commit)
        _git(tree, "branch", "-q", "-M", "main")
        _git(Path(place), "clone", "-q", "--bare", str(tree), str(made))
        _git(made, "config", "--remove-section", "remote.origin")
        made.rename(bare)
    return bare


def _git(place: Path, *words: str) -> None:
    done = subprocess.run(
        ["git", "-c", "core.hooksPath=/dev/null", "-C", str(place), *words],
        capture_output=True,
        check=False,
    )
    if done.returncode:
        said = " ".join(done.stderr.decode("utf-8", "replace").split())
        raise SortieError(f"the demo's repository cannot be made: git {words[0]}: {said}")
