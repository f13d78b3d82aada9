"""What a workspace of a repository costs, beside ``git clone --reference`` of the same mirror.

python -m tests.benchmarks.repositories [--megabytes N] [--files N] [--workspaces N]

prints it for a repository of another size than the table's. All workspaces are kept until the
last one is measured, as a daemon's are: ext4 looks at each file of a group that was removed in the
last minutes before it makes one there, which takes as long as the rest of a workspace. So the disk
needs room for them, and another measurement should wait until five minutes after this one.
"""

from __future__ import annotations

import argparse
import os
import random
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from shutil import disk_usage, rmtree
from tempfile import TemporaryDirectory

import trio

from sortie.model.git_urls import parse_git_url
from sortie.testing.agent.place import this_machine
from sortie.workspaces.git_values import GitAccess, RepositoryOptions
from sortie.workspaces.repository import Repository
from tests.benchmarks.row import Scale, Value, middle
from tests.workspaces.remotes import ENV, git

MEGABYTES, FILES, WORKSPACES = 1000, 50_000, 20
NOBODY = GitAccess()
_A_BASELINE = 4
"""Each so many workspaces one is made by ``git clone --reference``."""
_A_FOLDER = 100
"""Files of a folder."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """Of one workspace: seconds until it is checked out, and bytes of its ``.git``, and beside."""

    seconds: float
    git: int
    files: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Costs:
    """``first`` and ``bare`` are the seconds of the mirror and of ``git clone --mirror``, ``size``
    the bytes of the repository; then each workspace, ours and the baseline's by turns, how long
    it takes to copy the files of the last one, and one of ours after so many files were removed."""

    first: float
    bare: float
    size: int
    ours: tuple[Cost, ...]
    theirs: tuple[Cost, ...]
    copies: tuple[float, ...]
    after_removal: Cost


def make_repository(place: Path, megabytes: float, files: int) -> Path:
    """Make a bare repository with one commit of so many files of random bytes."""
    bare = place / "remote.git"
    git(place, "init", "-q", "--bare", str(bare))
    each, luck = max(1, int(megabytes * 1e6) // files), random.Random(1)
    fed = subprocess.Popen(
        ["git", "-c", "core.compression=0", "-C", str(bare), "fast-import", "--quiet"],
        stdin=subprocess.PIPE,
        env=ENV,
    )
    assert fed.stdin is not None
    fed.stdin.write(b"commit refs/heads/main\ncommitter Ann <ann@example.org> 0 +0000\ndata 0\n")
    for number in range(files):
        name = f"folder-{number // _A_FOLDER}/file-{number}"
        fed.stdin.write(b"M 644 inline %b\ndata %d\n" % (name.encode(), each))
        fed.stdin.write(luck.randbytes(each) + b"\n")
    fed.stdin.close()
    assert fed.wait() == 0
    git(bare, "symbolic-ref", "HEAD", "refs/heads/main")
    return bare


def bytes_in(place: Path, beside: str = "") -> int:
    """Return what the files below a directory take on disk, without a folder of this name."""
    size = 0
    for folder, folders, names in os.walk(place):
        folders[:] = [name for name in folders if name != beside]
        size += sum(os.lstat(f"{folder}/{name}").st_blocks * 512 for name in names)
    return size


def measure_costs(megabytes: float, files: int, workspaces: int) -> Costs:
    """Measure a mirror and its workspaces."""
    with TemporaryDirectory(prefix="sortie-bench-") as text:
        place = Path(text)
        needed = int(megabytes * 1e6 * (workspaces * (1 + 1 / _A_BASELINE) + 5))
        if disk_usage(place).free < needed:
            raise SystemExit(f"{place} needs {needed / 1e9:.0f} GB for this; set TMPDIR")
        bare = make_repository(place, megabytes, files)
        root = place / "root"
        root.mkdir()
        transport = this_machine().transport()
        repository = Repository(transport, str(root), parse_git_url(str(bare)), RepositoryOptions())
        with _timed() as mirrored:
            git(place, "clone", "-q", "--mirror", f"file://{bare}", str(place / "mirror.git"))
        rmtree(place / "mirror.git")
        with _timed() as first:
            trio.run(repository.fetch, NOBODY, ENV)
        ours, theirs = [], []
        for number in range(workspaces):
            ours.append(_ours(repository, root / f"T-{number}"))
            if number % _A_BASELINE == 1:
                theirs.append(_theirs(repository.mirror, bare, place / f"B-{number}"))
        copies = tuple(_copies(repository, root / "T-last"))
        after_removal = _ours(repository, root / "T-after")
        return Costs(
            first=first[0],
            bare=mirrored[0],
            size=bytes_in(bare),
            ours=tuple(ours),
            theirs=tuple(theirs),
            copies=copies,
            after_removal=after_removal,
        )


def _ours(repository: Repository, path: Path) -> Cost:
    _settle(Path(repository.mirror))
    return _cost(_checked_out(repository, path), path)


def _copies(repository: Repository, path: Path) -> Iterator[float]:
    """Yield how long it takes to copy the files alone."""
    _checked_out(repository, path)
    rmtree(path / ".git")
    for number in range(3):
        copy = path.with_name(f"copy-{number}")
        with _timed() as took:
            subprocess.run(["cp", "-R", str(path), str(copy)], check=True)
        rmtree(copy)
        yield took[0]


def _checked_out(repository: Repository, path: Path) -> float:
    async def check_out() -> None:
        key = path.name
        await repository.fetch(NOBODY, ENV)
        branch = f"sortie/{key}"
        await repository.check_out(str(path), key, "run", branch, NOBODY, ENV, new=True)

    path.mkdir()
    with _timed() as took:
        trio.run(check_out)
    return took[0]


def _theirs(mirror: str, bare: Path, path: Path) -> Cost:
    _settle(Path(mirror), bare)
    with _timed() as took:
        git(path.parent, "clone", "-q", "--reference", mirror, f"file://{bare}", str(path))
        git(path, "checkout", "-q", "-b", f"sortie/{path.name}")
    return _cost(took[0], path)


def _cost(seconds: float, path: Path) -> Cost:
    return Cost(seconds=seconds, git=bytes_in(path / ".git"), files=bytes_in(path, ".git"))


def _settle(*repositories: Path) -> None:
    """Have the disk written what came before, and memory hold the packs of these alone.

    Else a workspace pays for the memory that those before it have filled with files. Only root may
    empty the cache; without that the numbers are larger.
    """
    os.sync()
    with suppress(OSError):
        Path("/proc/sys/vm/drop_caches").write_text("3")
    for pack in (pack for each in repositories for pack in each.glob("objects/pack/*")):
        with pack.open("rb") as file:
            while file.read(1 << 20):
                pass


@contextmanager
def _timed() -> Iterator[list[float]]:
    """Measure the block, once the disk has written what came before."""
    os.sync()
    took: list[float] = []
    began = time.perf_counter()
    yield took
    took.append(time.perf_counter() - began)


def repositories(scale: Scale) -> Mapping[str, Value]:
    """Measure the second and later workspaces, in seconds and in percent of the repository."""
    costs = measure_costs(scale.of(MEGABYTES, 1), scale.of(FILES, 50), scale.of(WORKSPACES, 3))
    ours, theirs = costs.ours[1:], costs.theirs
    share = 100 / costs.size
    return {
        "repository.time": Value(
            ours=middle([each.seconds for each in ours]),
            baseline=middle([each.seconds for each in theirs]),
            also={
                "at most": max(each.seconds for each in ours),
                "after files were removed": costs.after_removal.seconds,
                "the mirror, once": costs.first,
                "git clone --mirror": costs.bare,
                "the files copied by cp": middle(list(costs.copies)),
            },
        ),
        "repository.space": Value(
            ours=middle([each.git * share for each in ours]),
            baseline=middle([each.git * share for each in theirs]),
            also={"the files that are checked out": middle([each.files * share for each in ours])},
        ),
    }


def main() -> None:
    """Print what was measured for a repository of the size that is wanted."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.repositories")
    parser.add_argument("--megabytes", type=float, default=MEGABYTES)
    parser.add_argument("--files", type=int, default=FILES)
    parser.add_argument("--workspaces", type=int, default=WORKSPACES)
    given = parser.parse_args()
    costs = measure_costs(given.megabytes, given.files, given.workspaces)
    write = sys.stdout.write
    write(f"mirror: {costs.first:.2f} s, git clone --mirror: {costs.bare:.2f} s\n")
    for name, each in (("ours", costs.ours), ("git clone --reference", costs.theirs)):
        times = " ".join(f"{cost.seconds:.2f}" for cost in each)
        write(f"{name}: {times} s; .git {each[-1].git:,} bytes, files {each[-1].files:,} bytes\n")
    write(f"ours after files were removed: {costs.after_removal.seconds:.2f} s\n")
    write(f"the files copied by cp: {' '.join(f'{took:.2f}' for took in costs.copies)} s\n")
    write(f"the repository: {costs.size:,} bytes\n")


if __name__ == "__main__":
    main()
