"""Mounts for tests, which are gone when their block is left."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest


@contextmanager
def bound(source: Path, target: Path) -> Iterator[None]:
    """Have a directory or a file show the content of another one."""
    subprocess.run(["mount", "--bind", "--make-private", source, target], check=True)
    try:
        yield
    finally:
        subprocess.run(["umount", "--lazy", target], check=True)


@contextmanager
def full_disk(target: Path) -> Iterator[Path]:
    """Mount a small disk at a directory, and fill it; removing the returned file makes room."""
    target.mkdir(parents=True, exist_ok=True)
    options = "size=256k,mode=0700"
    subprocess.run(["mount", "-t", "tmpfs", "-o", options, "tmpfs", target], check=True)
    try:
        ballast = target / "ballast"
        ballast.write_bytes(b"")
        with suppress(OSError), ballast.open("ab", buffering=0) as file:
            while True:
                file.write(bytes(4096))
        yield ballast
    finally:
        subprocess.run(["umount", "--lazy", target], check=True)


@cache
def can_mount() -> bool:
    """Tell whether this process may mount something."""
    if sys.platform != "linux" or os.geteuid() != 0 or shutil.which("mount") is None:
        return False
    with TemporaryDirectory() as place:
        command = ["mount", "--bind", "--make-private", place, place]
        done = subprocess.run(command, capture_output=True, check=False)
        if done.returncode == 0:
            subprocess.run(["umount", "--lazy", place], check=True)
        return done.returncode == 0


requires_mounts = pytest.mark.skipif(
    not can_mount(), reason="only root may mount something, where the system lets it"
)
