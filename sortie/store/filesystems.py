"""Which file systems a database cannot lie on, and which may refuse the next write."""

from __future__ import annotations

import os
import re
from pathlib import Path

from msgspec import Struct

from sortie.model import StoreError

# fmt: off
NETWORK = frozenset((
    "9p", "acfs", "afs", "beegfs", "ceph", "cifs", "coda", "davfs", "gfs2", "glusterfs",
    "gpfs", "lustre", "ncpfs", "nfs", "nfs4", "ocfs2", "orangefs", "pvfs2", "smb2", "smb3",
    "smbfs",
    "fuse.beegfs", "fuse.ceph", "fuse.curlftpfs", "fuse.davfs2", "fuse.gcsfuse",
    "fuse.glusterfs", "fuse.goofys", "fuse.juicefs", "fuse.mount-s3", "fuse.rclone",
    "fuse.s3fs", "fuse.seaweedfs", "fuse.smbnetfs", "fuse.sshfs",
))
# fmt: on
"""File systems that other machines write too, or whose locks and shared memory WAL cannot trust."""

TIGHT = 16 * 1024 * 1024
"""Bytes of free space below which a write may fail soon."""

MOUNTINFO = Path("/proc/self/mountinfo")
_ESCAPE = re.compile(r"\\([0-7]{3})")


class _Mount(Struct, frozen=True, kw_only=True):
    id: str
    parent: str
    point: str
    type: str


def filesystem_type(path: str, mountinfo_text: str) -> str | None:
    """Return the type of the file system that holds an absolute path without links.

    None where the text does not tell. The text is that of ``/proc/self/mountinfo``, whose format
    is in proc(5); a mount that lies under a later one is not mistaken for the visible one.
    """
    mounts = [m for m in map(_parse, mountinfo_text.splitlines()) if m and _holds(m.point, path)]
    ids = {mount.id for mount in mounts}
    found: _Mount | None = None
    above = [m for m in mounts if m.parent not in ids or m.parent == m.id]
    while above:
        # Of two mounts on one parent, the shorter was made later, and hides the longer.
        found = min(above, key=lambda mount: len(mount.point))
        mounts.remove(found)
        above = [mount for mount in mounts if mount.parent == found.id]
    return found.type if found else None


def is_doubtful(path: str) -> bool:
    """Tell whether the next write to a file may fail: its file system is nearly full, read-only,
    or does not answer."""
    try:
        found = os.statvfs(path)
    except OSError:
        return True
    is_read_only = bool(found.f_flag & os.ST_RDONLY)
    return is_read_only or found.f_bavail * found.f_frsize < TIGHT


def refuse_network(path: str) -> None:
    """Raise StoreError where a file would lie on a network file system; Linux only."""
    try:
        text = MOUNTINFO.read_text(encoding="utf-8", errors="surrogateescape")
    except OSError:
        return
    kind = filesystem_type(os.path.realpath(path), text)
    if kind in NETWORK:
        raise StoreError(
            f"cannot keep the database {path} on a network file system ({kind}), where SQLite's "
            "locks do not hold; name a file on a local disk with db_path"
        )


def _parse(line: str) -> _Mount | None:
    fields = line.split(" ")
    if "-" not in fields[6:]:
        return None
    kind = fields.index("-", 6) + 1
    if kind >= len(fields):
        return None
    point = _ESCAPE.sub(lambda match: chr(int(match[1], 8)), fields[4])
    return _Mount(id=fields[0], parent=fields[1], point=point, type=fields[kind])


def _holds(point: str, path: str) -> bool:
    return point == "/" or path == point or path.startswith(point + "/")
