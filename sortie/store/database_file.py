"""Create or find the file of a database and open it, or say why that is impossible."""

from __future__ import annotations

import os
import re
import sqlite3
import stat
from contextlib import ExitStack
from pathlib import Path

from msgspec import Struct

from sortie.model import StoreError
from sortie.store.database import Database, explained
from sortie.store.schema_versions import migrate, migrations, schema_version

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


_SETTINGS = ("synchronous", "fullfsync", "foreign_keys", "journal_size_limit")


def open_database(path: str, busy_timeout: float) -> Database:
    """Open a database for writing, made or migrated where needed; call it in the owning thread.

    A new file has mode 0600, and SQLite gives its -wal and -shm files the same. ``busy_timeout``
    is how many seconds to wait for another process's lock. Raises StoreError.
    """
    place = place_of(path)
    refuse_network(place)
    _make_file(place)
    with explained("open", place), ExitStack() as undo:
        connection = sqlite3.connect(place, timeout=busy_timeout, isolation_level=None)
        undo.callback(connection.close)
        database = Database(connection, place)
        schema_version(database, migrations())  # before anything is changed in it
        _choose_wal(database)
        for setting in _SETTINGS:
            database.rows(setting)
        migrate(database, migrations())
        prove_writable(database)
        undo.pop_all()
    return database


def place_of(path: str) -> str:
    """Return an absolute path. Raises StoreError for one that no system can have."""
    if "\0" in path:
        raise StoreError(f"cannot open the database {path!r}: a path holds no null character")
    return os.path.abspath(path)


def prove_writable(database: Database) -> None:
    """Write and commit a row."""
    with database.transaction():
        database.change("prove_writable")


def try_to_write(database: Database) -> None:
    """Write a row and take it back: locks and permissions are tried, and the disk is not touched.

    A full disk is not noticed so.
    """
    with database.rolled_back():
        database.change("prove_writable")


def _make_file(path: str) -> None:
    # An existing file is never opened here: closing it would drop the locks that other
    # connections of this process hold on it.
    try:
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
    except FileExistsError:
        _refuse_irregular(path)
    except OSError as error:
        raise StoreError(
            f"cannot create the database {path}: {error.strerror}; make its directory exist and be "
            "writable, or name another file with db_path"
        ) from error


def _refuse_irregular(path: str) -> None:
    try:
        mode = os.stat(path).st_mode
    except OSError as error:
        raise StoreError(
            f"cannot open the database {path}: {error.strerror}; if it is a link, mend or remove it"
        ) from error
    if not stat.S_ISREG(mode):
        kind = "a directory" if stat.S_ISDIR(mode) else "not a regular file"
        raise StoreError(f"cannot open the database {path}: it is {kind}; name a file with db_path")


def _choose_wal(database: Database) -> None:
    mode = database.row("journal_mode")["journal_mode"]
    if mode != "wal":
        raise StoreError(
            f"cannot open the database {database.path}: its file system has no shared memory for "
            "SQLite's write-ahead log; name a file on a local disk with db_path"
        )
