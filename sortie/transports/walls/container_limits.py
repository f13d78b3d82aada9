"""The files by which a process enters the cgroups, and so the limits, of another process.

A container engine limits memory, tasks and processor time by cgroups of version 1 or 2, which may
be there beside each other, each controller of version 1 in a hierarchy of its own; see cgroups(7).
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

_DASH = " - "


def files_of_limits(pid: int, proc: Path = Path("/proc")) -> tuple[str, ...]:
    """Return the files that 0 is written to by a process that enters the cgroups of another.

    Hierarchies in which this process is in the same cgroup are left out. Blocks; raises OSError.
    """
    ours = dict(_cgroups(proc / "self"))
    mounts = list(_mounts(proc / "self" / "mountinfo"))
    files = []
    for controllers, path in _cgroups(proc / str(pid)):
        if ours.get(controllers) == path:
            continue
        for mounted, root, mount in mounts:
            if _serves(mounted, controllers) and _is_below(path, root):
                below = path.removeprefix(root.rstrip("/"))
                files.append(f"{mount.rstrip('/')}{below.rstrip('/')}/cgroup.procs")
                break
    return tuple(files)


def _cgroups(process: Path) -> Iterator[tuple[str, str]]:
    """Yield the controllers of each hierarchy, none for version 2, and a process's path in it."""
    for line in (process / "cgroup").read_text().splitlines():
        _, controllers, path = line.split(":", 2)
        yield controllers, path


def _mounts(mountinfo: Path) -> Iterator[tuple[frozenset[str] | None, str, str]]:
    """Yield the controllers of each mounted hierarchy, None for version 2, its root and place."""
    for line in mountinfo.read_text(errors="surrogateescape").splitlines():
        place, _, system = line.partition(_DASH)
        kind, *rest = system.split()
        if kind in ("cgroup", "cgroup2"):
            root, mount = place.split()[3:5]
            options = frozenset(rest[-1].split(","))
            yield (None if kind == "cgroup2" else options), root, mount


def _serves(mounted: frozenset[str] | None, controllers: str) -> bool:
    if mounted is None or not controllers:
        return mounted is None and not controllers
    return mounted.issuperset(controllers.split(","))


def _is_below(path: str, root: str) -> bool:
    return root == "/" or path == root or path.startswith(root + "/")
