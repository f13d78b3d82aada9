"""A repository at a remote, for the tests of what is delivered to it."""

from __future__ import annotations

import atexit
import os
import shutil
import subprocess
import tempfile
from functools import cache
from pathlib import Path

import pytest

requires_git_lfs = pytest.mark.skipif(shutil.which("git-lfs") is None, reason="there is no git-lfs")

ENV = {
    "PATH": os.environ["PATH"],
    "HOME": "/nonexistent",
    "GIT_CONFIG_NOSYSTEM": "1",
}
WHO = (
    *("-c", "user.name=Ann", "-c", "user.email=ann@example.org", "-c", "init.defaultBranch=main"),
    # Work in the background would be left to whoever adopts orphans: the test process.
    *("-c", "gc.auto=0", "-c", "maintenance.auto=false", "-c", "receive.autogc=false"),
)


def git(place: Path | str, *words: str, ok: bool = True) -> str:
    """Run git somewhere and return what it prints."""
    command = ["git", "-c", "protocol.file.allow=always", *WHO, "-C", str(place), *words]
    done = subprocess.run(command, check=False, capture_output=True, text=True, env=ENV)
    assert not ok or done.returncode == 0, done.stderr
    return done.stdout.strip()


def make_remote(place: Path, files: dict[str, str] | None = None) -> Path:
    """Make a bare repository with one commit on ``main``, and a clone of it beside it.

    Both are copies of what was made once, since git has twenty processes for it.
    """
    content = files or {"README": "hello\n", "src/a.py": "a = 1\n"}
    made = _made_once(tuple(content.items()))
    bare, tree = place / "remote.git", place / "seed"
    place.mkdir(parents=True, exist_ok=True)
    shutil.copytree(made / "remote.git", bare)
    shutil.copytree(made / "seed", tree)
    config = tree / ".git" / "config"
    config.write_text(config.read_text().replace(str(made / "remote.git"), str(bare)))
    git(tree, "update-index", "-q", "--refresh")
    return bare


@cache
def _made_once(files: tuple[tuple[str, str], ...]) -> Path:
    place = Path(tempfile.mkdtemp(prefix="sortie-remote-"))
    atexit.register(shutil.rmtree, place, ignore_errors=True)
    bare, tree = place / "remote.git", place / "seed"
    git(place, "init", "-q", "--bare", "remote.git")
    git(place, "clone", "-q", str(bare), "seed")
    for name, text in files:
        (tree / name).parent.mkdir(parents=True, exist_ok=True)
        (tree / name).write_text(text)
    git(tree, "add", "-A")
    git(tree, "commit", "-q", "-m", "Begin")
    git(tree, "push", "-q", "origin", "HEAD:main")
    git(bare, "symbolic-ref", "HEAD", "refs/heads/main")
    for name in ("gc.auto", "receive.autogc", "maintenance.auto"):
        git(bare, "config", name, "0")
    return place


def commit(tree: Path | str, name: str, text: str, message: str = "Work") -> str:
    """Commit a file and return the commit."""
    path = Path(tree) / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    git(tree, "add", "-A", "--", name)
    git(tree, "commit", "-q", "-m", message)
    return git(tree, "rev-parse", "HEAD")


def use_lfs(bare: Path) -> None:
    """Have files ``*.bin`` of a repository in LFS, ``a.bin`` among them."""
    seed = bare.with_name("seed")
    git(seed, "lfs", "install", "--local")
    git(seed, "lfs", "track", "*.bin")
    git(seed, "add", "-A")
    commit(seed, "a.bin", "first\n")
    git(seed, "push", "-q", "origin", "HEAD:main")


def add_submodule(bare: Path) -> tuple[str, str]:
    """Give a repository the submodule ``lib``; return the commit it is at, and a newer one."""
    seed, place = bare.with_name("seed"), bare.parent
    git(place, "init", "-q", "--bare", "lib.git")
    git(place, "clone", "-q", "lib.git", "lib")
    old = commit(place / "lib", "version", "1\n")
    git(place / "lib", "push", "-q", "origin", "HEAD:main")
    git(place / "lib.git", "symbolic-ref", "HEAD", "refs/heads/main")
    git(seed, "submodule", "--quiet", "add", "../lib.git", "lib")
    git(seed, "commit", "-q", "-m", "Have a submodule")
    git(seed, "push", "-q", "origin", "HEAD:main")
    new = commit(place / "lib", "version", "2\n")
    git(place / "lib", "push", "-q", "origin", "HEAD:main")
    return old, new
