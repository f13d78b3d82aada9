"""A repository at a remote, for the tests of what is delivered to it."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

ENV = {
    "PATH": os.environ["PATH"],
    "HOME": "/nonexistent",
    "GIT_CONFIG_NOSYSTEM": "1",
}
WHO = ("-c", "user.name=Ann", "-c", "user.email=ann@example.org", "-c", "init.defaultBranch=main")


def git(place: Path | str, *words: str, ok: bool = True) -> str:
    """Run git somewhere and return what it prints."""
    command = ["git", "-c", "protocol.file.allow=always", *WHO, "-C", str(place), *words]
    done = subprocess.run(command, check=False, capture_output=True, text=True, env=ENV)
    assert not ok or done.returncode == 0, done.stderr
    return done.stdout.strip()


def make_remote(place: Path, files: dict[str, str] | None = None) -> Path:
    """Make a bare repository with one commit on ``main``."""
    bare, tree = place / "remote.git", place / "seed"
    place.mkdir(parents=True, exist_ok=True)
    git(place, "init", "-q", "--bare", "remote.git")
    git(place, "clone", "-q", str(bare), "seed")
    for name, text in (files or {"README": "hello\n", "src/a.py": "a = 1\n"}).items():
        (tree / name).parent.mkdir(parents=True, exist_ok=True)
        (tree / name).write_text(text)
    git(tree, "add", "-A")
    git(tree, "commit", "-q", "-m", "Begin")
    git(tree, "push", "-q", "origin", "HEAD:main")
    git(bare, "symbolic-ref", "HEAD", "refs/heads/main")
    return bare


def commit(tree: Path | str, name: str, text: str, message: str = "Work") -> str:
    """Commit a file and return the commit."""
    path = Path(tree) / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    git(tree, "add", "-A", "--", name)
    git(tree, "commit", "-q", "-m", message)
    return git(tree, "rev-parse", "HEAD")
