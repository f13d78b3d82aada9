"""Agents that npm installs: each version once a machine, into a cache of the tests' own.

``SORTIE_TEST_CACHE`` names another folder for it than ``~/.cache/sortie-tests``.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
from functools import cache
from pathlib import Path
from tempfile import mkdtemp

import pytest

INSTALL_LIMIT = 900.0
"""Seconds that an installation may take, that of another process which holds the lock included."""


def npm_program(package: str, version: str) -> Path:
    """Return the folder into which ``package@version`` is installed, which has ``node_modules``.

    Skips the test, saying why, where it cannot be installed.
    """
    found = _installed(package, version)
    if isinstance(found, str):
        pytest.skip(found)
    return found


@cache
def _installed(package: str, version: str) -> Path | str:
    """Return the folder, or why there is none."""
    npm = shutil.which("npm")
    if npm is None:
        return f"{package} cannot be installed: npm is not on PATH"
    root = _cache()
    root.mkdir(parents=True, exist_ok=True)
    folder = root / f"{package.replace('/', '+')}@{version}"
    with (root / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if folder.exists():
            return folder
        return _install(npm, f"{package}@{version}", folder)


def _install(npm: str, what: str, folder: Path) -> Path | str:
    """Install beside the folder and move it there when all is well."""
    fresh = Path(mkdtemp(prefix="new-", dir=folder.parent))
    quiet = ("--no-audit", "--no-fund", "--no-save", "--loglevel=error", "--fetch-retries=1")
    command = [npm, "install", "--prefix", str(fresh), *quiet, what]
    try:
        ran = subprocess.run(
            command, cwd=fresh, capture_output=True, text=True, timeout=INSTALL_LIMIT, check=False
        )
    except subprocess.TimeoutExpired:
        shutil.rmtree(fresh)
        return f"{what} cannot be installed: npm took longer than {INSTALL_LIMIT:g} s"
    if ran.returncode != 0:
        shutil.rmtree(fresh)
        said = (line for line in ran.stderr.splitlines() if line.startswith("npm error"))
        return f"{what} cannot be installed: {next(said, f'npm exited with {ran.returncode}')}"
    return fresh.rename(folder)


def _cache() -> Path:
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(os.environ.get("SORTIE_TEST_CACHE") or Path(base) / "sortie-tests") / "npm"
