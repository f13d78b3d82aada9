"""What games may leave on this machine besides processes of runs: each trace of their daemons."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path

import psutil

from sortie.transports.local.cgroup_files import Hierarchy


def temporary_files(directory: Path) -> Iterator[str]:
    """Yield what daemons left in the directory that was their TMPDIR."""
    yield from (f"a temporary file: {name}" for name in os.listdir(directory))


def cgroups(pids: Sequence[int], since: float) -> Iterator[str]:
    """Yield the cgroups that daemons with these pids made since then, in Unix seconds."""
    hierarchy = Hierarchy.of("self")
    if hierarchy is None:
        return
    for daemon in Path(hierarchy.directory(hierarchy.own)).glob("sortie-*"):
        with suppress(OSError):
            for group in daemon.iterdir():
                made_by = group.name.rpartition(".")[2].partition("-")[0]
                is_new = group.is_dir() and group.stat().st_ctime >= since
                if is_new and made_by in map(str, pids):
                    yield f"a cgroup: {group}"


def mounts(root: Path) -> Iterator[str]:
    """Yield what is mounted here from or below a directory, or keeps a namespace there."""
    for line in Path("/proc/self/mountinfo").read_text().splitlines():
        if str(root) in line:
            yield f"a mount: {line}"


def processes_about(root: Path) -> Iterator[str]:
    """Yield who lives and knows a directory: by an argument, a variable, an open file, or a mount
    of its namespace. What this process has started itself does not count."""
    ours = {os.getpid(), *(parent.pid for parent in psutil.Process().parents())}
    ours |= {child.pid for child in psutil.Process().children(recursive=True)}
    name = os.fsencode(root)
    for process in psutil.process_iter():
        if process.pid in ours:
            continue
        with suppress(psutil.Error, OSError):
            how = _knows(Path(f"/proc/{process.pid}"), name)
            if how and process.status() != psutil.STATUS_ZOMBIE:
                yield f"{process.pid} {process.name()} knows the place by its {how}"


def _knows(process: Path, name: bytes) -> str:
    for file in ("cmdline", "environ", "mountinfo"):
        if name in (process / file).read_bytes():
            return file
    links = [process / "cwd", process / "root", *(process / "fd").iterdir()]
    return next((link.name for link in links if name in os.fsencode(os.readlink(link))), "")
