"""The locks that keep two daemons apart."""

from __future__ import annotations

import errno
import os
import re
import shutil
import socket
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from sortie.daemon.locks import (
    HeldElsewhere,
    Lock,
    database_lock,
    holder_of,
)
from sortie.daemon.root_lock import RootLock
from sortie.model import WorkspaceError


def test_a_second_holder_is_refused_and_told_who_has_it(tmp_path: Path) -> None:
    """The message names what is locked, and the holder's host, pid and start."""
    path = str(tmp_path / "lock")
    with Lock(path, "the database x") as first, Lock(path, "the database x") as second:
        first.ensure()

        with pytest.raises(HeldElsewhere, match=rf"the database x .* pid {os.getpid()}, since 2"):
            second.ensure()


def test_a_killed_holder_blocks_nobody(tmp_path: Path) -> None:
    """The lock of a process that was killed is free, whatever its file says."""
    path = tmp_path / "lock"
    program = (
        "import os, signal, sys; from sortie.daemon.locks import Lock;"
        "lock = Lock(sys.argv[1], 'x'); lock.ensure(); os.kill(os.getpid(), signal.SIGKILL)"
    )
    died = subprocess.run([sys.executable, "-c", program, str(path)], check=False)

    with Lock(str(path), "x") as lock:
        lock.ensure()

    assert died.returncode == -9
    assert path.read_text()


def test_a_removed_lock_file_is_made_and_locked_anew(tmp_path: Path) -> None:
    """A lock on a removed file excludes nobody, so the next look takes a new one."""
    path = tmp_path / "lock"
    with Lock(str(path), "x") as lock, Lock(str(path), "x") as other:
        lock.ensure()
        path.unlink()
        lock.ensure()

        with pytest.raises(HeldElsewhere):
            other.ensure()


def test_a_link_in_the_place_of_the_file_is_not_followed(tmp_path: Path) -> None:
    """What a link points to is neither locked nor written."""
    target, path = tmp_path / "target", tmp_path / "lock"
    target.write_text("precious")
    path.symlink_to(target)

    with Lock(str(path), "x") as lock, pytest.raises(OSError):
        lock.ensure()

    assert target.read_text() == "precious"


def test_a_note_that_makes_no_sense_is_no_trouble(tmp_path: Path) -> None:
    """A holder whose note cannot be read is refused for all that."""
    path = tmp_path / "lock"
    with Lock(str(path), "x") as lock, Lock(str(path), "x") as other:
        lock.ensure()
        path.write_text("[")

        with pytest.raises(HeldElsewhere, match="it has not said who it is"):
            other.ensure()


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere both kinds of locks meet")
@pytest.mark.parametrize("name", ["soft", "hard", "relative", "by/way"])
def test_a_database_has_one_lock_by_whatever_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """A link of either kind, a relative name and a linked directory lead to one file; the message
    names its holder."""
    place = tmp_path / "place"
    place.mkdir()
    (tmp_path / "by").mkdir()
    database = place / "x.db"
    database.touch()
    (tmp_path / "soft").symlink_to(database)
    os.link(database, tmp_path / "hard")
    (tmp_path / "by" / "way").symlink_to(place)
    other = {"relative": "place/x.db", "by/way": f"{tmp_path}/by/way/x.db"}.get(
        name, f"{tmp_path}/{name}"
    )
    monkeypatch.chdir(tmp_path)

    with database_lock(str(database)) as first, database_lock(other) as second:
        first.ensure()
        with pytest.raises(HeldElsewhere, match=rf"{other} .* pid {os.getpid()}, since 2"):
            second.ensure()
        first.release()
        second.ensure()


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere both kinds of locks meet")
def test_a_database_that_is_used_keeps_the_locks_of_sqlite(tmp_path: Path) -> None:
    """Ours is held beside SQLite's own, on the same file, and does not take them away."""
    path = str(tmp_path / "x.db")
    write = (
        "import sqlite3, sys; sqlite3.connect(sys.argv[1], timeout=0).execute('BEGIN IMMEDIATE')"
    )

    with database_lock(path) as lock:
        lock.ensure()
        database = sqlite3.connect(path, isolation_level=None)
        database.execute("CREATE TABLE t (x)")
        database.execute("BEGIN IMMEDIATE")
        with database_lock(path) as other, pytest.raises(HeldElsewhere):
            other.ensure()
        kept_out = subprocess.run([sys.executable, "-c", write, path], capture_output=True)
        database.execute("COMMIT")
        database.close()
    let_in = subprocess.run([sys.executable, "-c", write, path], capture_output=True)

    assert b"database is locked" in kept_out.stderr
    assert (let_in.returncode, let_in.stderr) == (0, b"")


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere the file alone is locked")
def test_a_database_that_is_made_later_is_locked_then(tmp_path: Path) -> None:
    """To lock it makes no file; once it is there, no second name of it lets another in."""
    path = tmp_path / "x.db"

    with database_lock(str(path)) as lock, database_lock(str(tmp_path / "hard")) as other:
        lock.ensure()
        made = path.exists()
        path.touch()
        lock.ensure()
        os.link(path, tmp_path / "hard")
        with pytest.raises(HeldElsewhere):
            other.ensure()

    assert not made


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere the file alone is locked")
def test_a_root_is_locked_though_its_lock_file_is_removed(tmp_path: Path) -> None:
    """What an agent removes in the root lets no second daemon in; ours makes it anew."""
    (tmp_path / "root").mkdir()
    (tmp_path / "link").symlink_to("root")
    root, same = str(tmp_path / "root"), str(tmp_path / "link" / ".")

    with RootLock(root) as first, RootLock(same) as second:
        first.ensure()
        (tmp_path / "root" / "@daemon.lock").unlink()
        with pytest.raises(HeldElsewhere, match=rf"pid {os.getpid()}, since 2"):
            second.ensure()
        first.ensure()

    assert (tmp_path / "root" / "@daemon.lock").exists()


def test_who_holds_a_lock_is_told_without_taking_it(tmp_path: Path) -> None:
    """The asker needs no right to write, and the holder keeps the lock."""
    path = str(tmp_path / "lock")
    with Lock(path, "x") as lock:
        lock.ensure()

        holder = holder_of(path)

        lock.ensure()
    assert holder is not None
    who = re.escape(f"host {socket.gethostname()}, pid {os.getpid()}")
    assert re.fullmatch(rf"{who}, since 2[0-9T:-]+Z", holder)
    assert holder_of(path) is None


@pytest.mark.parametrize("content", [None, b"", b"{", b"[]", b"\xff"])
def test_nobody_holds_a_lock_file_that_is_not_locked(tmp_path: Path, content: bytes | None) -> None:
    """Whatever stands in it."""
    if content is not None:
        (tmp_path / "lock").write_bytes(content)

    assert holder_of(str(tmp_path / "lock")) is None


def test_a_lock_whose_note_cannot_be_written_keeps_nobody_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where the disk is full it is not held, not even against who tried."""
    path = str(tmp_path / "lock")

    def refuse(_fd: int, _data: bytes, _offset: int) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    with Lock(path, "x") as lock:
        with monkeypatch.context() as full:
            full.setattr(os, "pwrite", refuse)
            with pytest.raises(OSError, match="No space"):
                lock.ensure()
        lock.ensure()


def test_a_root_that_was_removed_or_replaced_is_not_taken(tmp_path: Path) -> None:
    """Neither a missing root nor an empty mount point in its place passes for it; it does again
    when it is back, and its lock file may be removed meanwhile."""
    root, away = tmp_path / "root", tmp_path / "away"
    root.mkdir()
    with RootLock(str(root)) as lock:
        lock.check()
        lock.ensure()
        root.rename(away)
        with pytest.raises(WorkspaceError, match="not what it was when it was locked"):
            lock.check()
        root.mkdir()
        with pytest.raises(WorkspaceError, match="bring it back, or restart"):
            lock.ensure()
        made = list(root.iterdir())
        root.rmdir()
        away.rename(root)
        lock.ensure()
        (root / "@daemon.lock").unlink()
        lock.ensure()

    assert made == []


def test_a_root_is_known_again_by_what_its_lock_file_says(tmp_path: Path) -> None:
    """A disk that is mounted again may have another device number; another daemon's root is not
    taken for ours."""
    root, copy = tmp_path / "root", tmp_path / "copy"
    root.mkdir()
    with RootLock(str(root)) as lock:
        lock.ensure()
        shutil.copytree(root, copy)
        root.rename(tmp_path / "away")
        copy.rename(root)
        lock.ensure()
        with RootLock(str(root)) as other, pytest.raises(HeldElsewhere):
            other.ensure()
        root.rename(tmp_path / "copy")
        root.mkdir()
        (root / "@daemon.lock").write_text('{"host": "x", "pid": 1, "started_at": "2026"}')

        with pytest.raises(WorkspaceError):
            lock.check()
