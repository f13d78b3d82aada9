"""Try mutants: each in a tree of its own, with the tests nearest to it, in a fresh process."""

from __future__ import annotations

import os
import queue
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.mutation.mutants import Mutant

ROOT = Path(__file__).resolve().parents[2]
COPIED = ("sortie", "tests", "docs", "README.md", "WORKFLOW.example.md", "pyproject.toml")
TIMEOUT_FACTOR = 5.0
"""How many times as long as the sound tests a mutant may take before it counts as hanging."""


@dataclass(frozen=True, slots=True)
class Tried:
    """What became of a mutant."""

    mutant: Mutant
    killed: bool
    seconds: float


class Unsound(Exception):
    """The tests fail without any mutant."""


def try_all(
    mutants: Sequence[Mutant], tests: Sequence[str], jobs: int, until: float
) -> Iterator[Tried]:
    """Try mutants and yield what became of each, as it becomes known.

    None is begun after ``until``, in seconds of ``time.monotonic``. Raises Unsound.
    """
    with _trees(jobs) as trees:
        limit = _seconds_when_sound(trees[0], tests) * TIMEOUT_FACTOR + 60
        free: queue.SimpleQueue[Path] = queue.SimpleQueue()
        for tree in trees:
            free.put(tree)

        def try_one(mutant: Mutant) -> Tried | None:
            if time.monotonic() > until:
                return None
            tree = free.get()
            try:
                return _try(tree, mutant, tests, limit)
            finally:
                free.put(tree)

        with ThreadPoolExecutor(jobs) as pool:
            for done in as_completed([pool.submit(try_one, mutant) for mutant in mutants]):
                if (tried := done.result()) is not None:
                    yield tried


@contextmanager
def _trees(count: int) -> Iterator[list[Path]]:
    with TemporaryDirectory(prefix="sortie-mutants-") as directory:
        trees = [Path(directory, str(number)) for number in range(count)]
        for tree in trees:
            for name in COPIED:
                source, target = ROOT / name, tree / name
                if source.is_dir():
                    shutil.copytree(source, target, ignore=shutil.ignore_patterns("__pycache__"))
                else:
                    target.parent.mkdir(parents=True, exist_ok=True)
                    shutil.copy(source, target)
        yield trees


def _seconds_when_sound(tree: Path, tests: Sequence[str]) -> float:
    began = time.monotonic()
    found = _pytest(tree, tests, None)
    if found.returncode != 0:
        raise Unsound(found.stdout[-3000:] + found.stderr[-1000:])
    return time.monotonic() - began


def _try(tree: Path, mutant: Mutant, tests: Sequence[str], limit: float) -> Tried:
    file = tree / mutant.file
    sound, began = file.read_text(), time.monotonic()
    file.write_text(mutant.code)
    try:
        killed = _pytest(tree, tests, limit).returncode != 0
    except subprocess.TimeoutExpired:
        killed = True
    finally:
        file.write_text(sound)
    return Tried(mutant, killed, time.monotonic() - began)


def _pytest(
    tree: Path, tests: Sequence[str], limit: float | None
) -> subprocess.CompletedProcess[str]:
    arguments = ["-x", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", *tests]
    return subprocess.run(
        [sys.executable, "-m", "pytest", *arguments],
        cwd=tree,
        env={**os.environ, "PYTHONPATH": str(tree), "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        check=False,
        timeout=limit,
    )
