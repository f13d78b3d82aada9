"""What a database is, as its last daemon has left it, and that this process is its daemon now."""

from __future__ import annotations

from msgspec import Struct

from sortie.model import ProcessIdentity
from sortie.store.database import Database


class DatabaseIdentity(Struct, frozen=True, kw_only=True):
    """A database, as its last daemon has left it.

    ``file`` is the file that it had, by device and inode, and ``here`` the one that is open now:
    they differ where the file was copied, or moved to another file system. ``path_named``: an
    earlier version, which named what it started by the path, may have left something.
    """

    id: str
    here: tuple[int, int]
    file: tuple[int, int] | None
    daemon: ProcessIdentity | None
    path_named: bool

    @property
    def is_copy(self) -> bool:
        """Whether the last daemon had another file."""
        return self.file is not None and self.file != self.here


def read_identity(database: Database) -> DatabaseIdentity:
    """Return what a database is."""
    row = database.row("identity")
    begun = row["inode"] is not None
    return DatabaseIdentity(
        id=row["id"],
        here=_signed_pair(database.identity),
        file=(row["device"], row["inode"]) if begun else None,
        daemon=ProcessIdentity(pid=row["pid"], started_at=row["started_at"]) if begun else None,
        path_named=bool(row["path_named"]),
    )


def begin_life(database: Database, *, process: ProcessIdentity, database_id: str) -> None:
    """Note which process is the daemon of a database from now on, and under which id."""
    device, inode = _signed_pair(database.identity)
    with database.transaction():
        database.change(
            "begin_life",
            id=database_id,
            device=device,
            inode=inode,
            pid=process.pid,
            started_at=process.started_at,
        )


def forget_path_name(database: Database) -> None:
    """Note that nothing is left that is named by the path."""
    with database.transaction():
        database.change("forget_path_name")


def _signed_pair(identity: tuple[int, int]) -> tuple[int, int]:
    """Return two numbers of 64 bits as SQLite can hold them."""
    device, inode = (number - (1 << 64) if number >= 1 << 63 else number for number in identity)
    return device, inode
