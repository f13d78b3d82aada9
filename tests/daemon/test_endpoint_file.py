"""The file by which commands find a daemon: private, whole, and believed only of the living."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory

import psutil
import pytest
from msgspec.structs import replace

from sortie.daemon.endpoint_file import (
    DaemonEndpoint,
    EndpointFile,
    NoEndpointFile,
    UnreadableEndpointFile,
    endpoint_of_this_process,
    read_endpoint,
)
from sortie.model import ProcessIdentity
from sortie.resources.process_identity import identity_of

TOKEN = "a-token-5f1c0de"
URL = "http://127.0.0.1:7678/"
NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)

OURS = endpoint_of_this_process(url=URL, token=TOKEN, workflow="/p/WORKFLOW.md")


@pytest.fixture
def db_path(tmp_path: Path) -> str:
    return str(tmp_path / "a.db")


@pytest.fixture
def open_directory() -> Iterator[str]:
    """A directory that all users can look into."""
    with TemporaryDirectory() as directory:
        os.chmod(directory, 0o755)
        yield directory


def file_of(db_path: str) -> Path:
    return Path(f"{db_path}.daemon")


def test_what_was_written_can_be_read(db_path: str) -> None:
    """All fields come back, and the daemon that reads is alive and here."""
    EndpointFile(db_path, OURS).write()

    found = read_endpoint(db_path)

    assert found == OURS
    assert found.process.pid == os.getpid()
    assert found.is_here()
    assert found.is_alive()


def test_the_document_has_the_documented_fields(db_path: str) -> None:
    """Other programs can rely on the names."""
    EndpointFile(db_path, replace(OURS, started_at=NOON)).write()

    assert json.loads(file_of(db_path).read_text()) == {
        "url": URL,
        "token": TOKEN,
        "pid": os.getpid(),
        "process_started_at": OURS.process.started_at,
        "started_at": "2026-01-01T12:00:00+00:00",
        "host": OURS.host,
        "version": OURS.version,
        "workflow": "/p/WORKFLOW.md",
        "isolation": None,
        "isolation_refused": False,
    }


def test_without_a_server_there_is_neither_url_nor_token(db_path: str) -> None:
    """A daemon without a port says so, and keeps its token to itself."""
    endpoint = endpoint_of_this_process(url=None, token=TOKEN, workflow="w")
    EndpointFile(db_path, endpoint).write()

    assert (read_endpoint(db_path).url, read_endpoint(db_path).token) == (None, None)


def test_the_token_is_not_shown(db_path: str) -> None:
    """The token stands in the file and in no repr."""
    EndpointFile(db_path, OURS).write()

    assert TOKEN in file_of(db_path).read_text()
    assert TOKEN not in repr(OURS) + repr(read_endpoint(db_path))


@pytest.mark.parametrize("mask", [0o000, 0o022, 0o777])
def test_only_the_owner_can_read_it_whatever_the_umask(db_path: str, mask: int) -> None:
    """The mode is 0600, and no other file is left in the directory."""
    before = os.umask(mask)
    try:
        EndpointFile(db_path, OURS).write()
    finally:
        os.umask(before)

    assert stat.S_IMODE(file_of(db_path).stat().st_mode) == 0o600
    assert os.listdir(Path(db_path).parent) == ["a.db.daemon"]


def test_an_older_file_is_replaced_and_not_written_into(db_path: str) -> None:
    """Whoever has the old file open, or linked, does not see the new token."""
    file_of(db_path).write_text("old")
    os.chmod(file_of(db_path), 0o666)
    other = Path(db_path).parent / "other"
    os.link(file_of(db_path), other)

    EndpointFile(db_path, OURS).write()

    assert other.read_text() == "old"
    assert stat.S_IMODE(file_of(db_path).stat().st_mode) == 0o600


@pytest.mark.parametrize("suffix", [".daemon", ".daemon.new"])
def test_no_link_is_followed(db_path: str, suffix: str) -> None:
    """A link that stands where the file or its draft will be is replaced; its target is not."""
    target = Path(db_path).parent / "target"
    target.write_text("precious")
    os.symlink(target, f"{db_path}{suffix}")

    EndpointFile(db_path, OURS).write()

    assert target.read_text() == "precious"
    assert not file_of(db_path).is_symlink()
    assert read_endpoint(db_path) == OURS
    assert sorted(os.listdir(target.parent)) == ["a.db.daemon", "target"]


def test_what_cannot_be_written_leaves_nothing(db_path: str) -> None:
    """A directory in the way is an OSError, and no draft with the token stays behind."""
    file_of(db_path).mkdir()

    with pytest.raises(OSError):
        EndpointFile(db_path, OURS).write()

    assert os.listdir(Path(db_path).parent) == ["a.db.daemon"]


def test_it_is_removed_by_its_writer_alone(db_path: str) -> None:
    """What somebody else wrote meanwhile stays; one's own goes, and going twice is no fault."""
    first, second = EndpointFile(db_path, OURS), EndpointFile(db_path, replace(OURS, token="2"))
    first.write()
    second.write()

    first.remove()
    still_there = file_of(db_path).exists()
    second.remove()
    second.remove()

    assert still_there
    assert not file_of(db_path).exists()


def test_no_file_is_no_endpoint(db_path: str) -> None:
    """A missing file, or directory, has an error of its own."""
    with pytest.raises(NoEndpointFile):
        read_endpoint(db_path)
    with pytest.raises(NoEndpointFile):
        read_endpoint(f"{db_path}/missing/a.db")


@pytest.mark.parametrize(
    "change",
    [
        {"url": 7},
        {"token": None},
        {"pid": "many"},
        {"pid": None},
        {"process_started_at": None},
        {"started_at": "noon"},
        {"started_at": "2026-01-01T12:00:00"},
        {"host": None},
        {"workflow": 1},
    ],
)
def test_a_field_of_another_kind_is_told(db_path: str, change: dict[str, object]) -> None:
    """Every field is checked before it is used."""
    EndpointFile(db_path, OURS).write()
    document = json.loads(file_of(db_path).read_text())
    file_of(db_path).write_text(json.dumps(document | change))

    with pytest.raises(UnreadableEndpointFile, match="does not tell"):
        read_endpoint(db_path)


@pytest.mark.parametrize("kind", ["link", "fifo", "directory"])
def test_only_a_plain_file_is_read(db_path: str, kind: str) -> None:
    """Reading follows no link and does not wait for a FIFO's writer."""
    match kind:
        case "link":
            EndpointFile(f"{db_path}.other", OURS).write()
            os.symlink(f"{db_path}.other.daemon", file_of(db_path))
        case "fifo":
            os.mkfifo(file_of(db_path))
        case _:
            file_of(db_path).mkdir()

    with pytest.raises(UnreadableEndpointFile):
        read_endpoint(db_path)


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root to be two users")
@pytest.mark.parametrize("mode", [0o600, 0o644])
def test_another_users_file_is_not_used(open_directory: str, mode: int) -> None:
    """Who may not read it is told whose it is, and what a stranger planted is not believed."""
    nobody, daemon = 65534, 1
    db_path = f"{open_directory}/a.db"
    EndpointFile(db_path, OURS).write()
    os.chown(file_of(db_path), daemon, daemon)
    os.chmod(file_of(db_path), mode)
    assert read_endpoint(db_path) == OURS  # root may

    os.seteuid(nobody)
    try:
        with pytest.raises(
            UnreadableEndpointFile, match=r"belongs to user .*; run this command as"
        ):
            read_endpoint(db_path)
    finally:
        os.seteuid(0)


def test_a_process_that_is_gone_is_not_alive() -> None:
    """Neither an unused pid, nor an impossible one, nor a zombie is a daemon."""
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as child:
        endpoint = with_process(identity_of(child.pid))
        alive = endpoint.is_alive()
        child.kill()
        os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
        assert psutil.Process(child.pid).status() == psutil.STATUS_ZOMBIE
        as_zombie = endpoint.is_alive()
    afterwards = endpoint.is_alive()
    impossible = [
        with_process(ProcessIdentity(pid=pid, started_at=1.0)).is_alive()
        for pid in (-1, 0, 2**31, 2**70)
    ]

    assert (alive, as_zombie, afterwards) == (True, False, False)
    assert impossible == [False] * 4


def test_the_same_pid_is_not_the_same_process() -> None:
    """A process that was started at another time is a stranger."""
    other = replace(OURS.process, started_at=OURS.process.started_at - 60)

    assert not with_process(other).is_alive()


def with_process(identity: ProcessIdentity) -> DaemonEndpoint:
    return replace(OURS, process=identity)
