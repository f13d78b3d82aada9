"""The files of the cgroup v2 hierarchy, see Documentation/admin-guide/cgroup-v2.rst of Linux.

All functions here raise OSError, and may wait some 10 ms for the kernel, but for ``cgroup_of``.
"""

from __future__ import annotations

import os
from contextlib import suppress

from msgspec import Struct

from sortie.resources import shortage_behind

_MOUNTS, _OWN = "/proc/self/mountinfo", "/proc/self/cgroup"
_DASH, _TYPE = " - ", "cgroup2"
_UNIFIED = b"0::"
_WRITTEN = ("cgroup.procs", "cgroup.kill")


class Hierarchy(Struct, frozen=True, kw_only=True):
    """Where cgroup v2 is mounted, which of its cgroups that shows as ``root``, and our own one."""

    mount: str
    root: str
    own: str

    @classmethod
    def of(cls, process: int | str) -> Hierarchy | None:
        """Return the hierarchy, None where there is none in which a process can be found."""
        own = cgroup_of(process)
        if own is None:
            return None
        try:
            with open(_MOUNTS, encoding="utf-8", errors="surrogateescape") as file:
                mounts = [line.partition(_DASH) for line in file]
        except OSError:
            return None
        # "36 35 98:0 /root /mount options - type source options", see proc(5).
        for place, _, system in mounts:
            if system.split()[:1] == [_TYPE]:
                root, mount = map(plain_path, place.split()[3:5])
                if own == root or own.startswith(root.rstrip("/") + "/"):
                    return cls(mount=mount, root=root, own=own)
        return None

    def directory(self, cgroup: str) -> str:
        """Return the directory of a cgroup."""
        return (self.mount + "/" + cgroup.removeprefix(self.root).lstrip("/")).rstrip("/")

    def make(self, name: str) -> str | None:
        """Make a cgroup below our own one; return its directory, None where processes cannot be
        moved there and killed."""
        own = self.directory(self.own)
        directory = f"{own}/{name}"
        try:
            with suppress(FileExistsError):
                os.mkdir(directory)
            with open(f"{directory}/cgroup.type", "rb") as file:
                usable = file.read().strip() == b"domain"
        except OSError:
            return None
        files = [f"{directory}/{file}" for file in _WRITTEN]
        writable = all(os.access(path, os.W_OK) for path in (f"{own}/cgroup.procs", *files))
        return directory if usable and writable else None


def plain_path(path: str) -> str:
    """Return a path of /proc/self/mountinfo as it is, see proc(5)."""
    for code, char in (("\\040", " "), ("\\011", "\t"), ("\\012", "\n"), ("\\134", "\\")):
        path = path.replace(code, char)
    return path


def cgroup_of(process: int | str) -> str | None:
    """Return the cgroup of a process in the v2 hierarchy, None where it is in none.

    Raises OSError where a shortage leaves that unknown.
    """
    try:
        with open(f"/proc/{process}/cgroup", "rb", buffering=0) as file:
            said = file.read()
    except OSError as exc:
        if shortage_behind(exc) is not None:
            raise
        return None
    for line in said.splitlines():
        if line.startswith(_UNIFIED):
            return os.fsdecode(line.removeprefix(_UNIFIED))
    return None


def move(pid: int, directory: str) -> None:
    """Move a process into a cgroup; what it starts from then on is in it."""
    _write(f"{directory}/cgroup.procs", b"%d" % pid)


def kill(directory: str) -> None:
    """Kill all that is in a cgroup and in those below it."""
    _write(f"{directory}/cgroup.kill", b"1")


def members(directory: str) -> set[int]:
    """Return the pids of the processes in a cgroup and in those below it."""
    found: set[int] = set()
    for place, _, _ in os.walk(directory):
        with suppress(FileNotFoundError), open(f"{place}/cgroup.procs", "rb") as file:
            found.update(map(int, file))
    return found


def remove(directory: str) -> bool:
    """Remove a cgroup and those below it, and kill what is in them; return whether it is gone."""
    try:
        os.rmdir(directory)
    except FileNotFoundError:
        return True
    except OSError:
        with suppress(OSError):
            kill(directory)
        for place, _, _ in os.walk(directory, topdown=False):
            with suppress(OSError):
                os.rmdir(place)
        return not os.path.exists(directory)
    return True


def read_text(path: str) -> str:
    """Return what a file of a cgroup holds."""
    with open(path, encoding="ascii") as file:
        return file.read().strip()


def write_text(path: str, content: str) -> None:
    """Write a file of a cgroup in one go, as the kernel wants it."""
    _write(path, content.encode("ascii"))


def _write(path: str, content: bytes) -> None:
    fd = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
    try:
        os.write(fd, content)
    finally:
        os.close(fd)
