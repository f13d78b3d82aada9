"""Where the daemon of a database can be reached: ``<db_path>.daemon``, which commands read.

Rule 1: the file holds the token, so only its owner can read it, from its first byte on.
Rule 2: it is replaced whole, no link in its place is followed, and only its writer removes it.
Rule 3: a later process with the same pid is not taken for the daemon. A daemon is believed in while
the very process that wrote of itself lives here, or holds the lock of the database: in a container
the boot's id, by which processes are known again, may be another one for the daemon's unit than for
a shell.
"""

from __future__ import annotations

import json
import os
import pwd
import socket
import stat
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any

import psutil
from msgspec import Struct

from sortie import __version__
from sortie.daemon.locks import database_lock_path, holding_pid
from sortie.model import ProcessIdentity, SortieError
from sortie.model.hiding import repr_without
from sortie.resources.descriptors import own
from sortie.resources.process_identity import identity_of

_LONGEST_FILE = 64 * 1024
_ENDED_STATES = (psutil.STATUS_ZOMBIE, psutil.STATUS_DEAD)


class NoEndpointFile(SortieError):
    """There is no such file."""


class UnreadableEndpointFile(SortieError):
    """There is a file, and it cannot be read or believed."""


class DaemonEndpoint(Struct, frozen=True, kw_only=True):
    """How to reach a daemon; ``url`` and ``token`` are None where it has no HTTP server.

    ``isolation`` says what ends the processes of its runs on this machine, None where the daemon
    has not told; ``isolation_refused`` where namespaces are wanted and not had.
    """

    url: str | None
    token: str | None
    process: ProcessIdentity
    started_at: datetime
    host: str
    version: str
    workflow: str
    isolation: str | None = None
    isolation_refused: bool = False

    __repr__ = repr_without("token")

    def is_here(self) -> bool:
        """Tell whether it runs on this machine, or did."""
        return self.host == socket.gethostname()

    def is_alive(self) -> bool:
        """Tell whether the very process that wrote this runs on this machine."""
        return is_running(self.process)


def is_running(process: ProcessIdentity) -> bool:
    """Tell whether this very process runs, and not merely another one with its pid."""
    try:
        same = identity_of(process.pid) == process
        return same and psutil.Process(process.pid).status() not in _ENDED_STATES
    except (OSError, psutil.Error, ValueError, OverflowError):
        return False


def endpoint_path(db_path: str) -> str:
    """Return the path of the endpoint file of a database's daemon."""
    return f"{db_path}.daemon"


def is_at_work(db_path: str, endpoint: DaemonEndpoint) -> bool:
    """Tell whether a database's daemon, which left word there, still runs on this machine."""
    if not endpoint.is_here():
        return False
    return endpoint.is_alive() or holding_pid(database_lock_path(db_path)) == endpoint.process.pid


def endpoint_of_this_process(url: str | None, token: str | None, workflow: str) -> DaemonEndpoint:
    """Return what stands in the endpoint file of this daemon."""
    return DaemonEndpoint(
        url=url,
        token=token if url is not None else None,
        process=identity_of(os.getpid()),
        started_at=datetime.now(UTC),
        host=socket.gethostname(),
        version=__version__,
        workflow=workflow,
    )


class EndpointFile:
    """The file that says how to reach this daemon; its methods block."""

    def __init__(self, db_path: str, endpoint: DaemonEndpoint) -> None:
        self.path = endpoint_path(db_path)
        self._content = _encoded(endpoint)

    def write(self) -> None:
        """Write the file in place of what is there. Raises OSError and leaves no part of it."""
        fresh = f"{self.path}.new"
        # Left by a daemon that was killed meanwhile: the database's lock keeps others away.
        with suppress(FileNotFoundError):
            os.unlink(fresh)
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        fd = os.open(fresh, flags, 0o600)
        try:
            with own(fd, "wb") as file:
                os.fchmod(fd, 0o600)  # a umask may have taken more away
                file.write(self._content)
                file.flush()
                os.fsync(fd)
            os.rename(fresh, self.path)
        except OSError:
            with suppress(OSError):
                os.unlink(fresh)
            raise

    def remove(self) -> None:
        """Remove the file if it is still the one that was written; safe more than once."""
        with suppress(OSError, ValueError):
            if _content(self.path) == self._content:
                os.unlink(self.path)


def read_endpoint(db_path: str) -> DaemonEndpoint:
    """Return the endpoint that a database's daemon wrote, whether the daemon is alive or not.

    Raises NoEndpointFile and UnreadableEndpointFile.
    """
    path = endpoint_path(db_path)
    try:
        return _decoded(_content(path, trusted_only=True))
    except (FileNotFoundError, NotADirectoryError) as error:
        raise NoEndpointFile(f"there is no {path}") from error
    except PermissionError as error:
        raise UnreadableEndpointFile(
            f"cannot read {path}, which tells how to reach the daemon: it belongs to"
            f" {_owner(path)}; run this command as that user"
        ) from error
    except OSError as error:
        raise UnreadableEndpointFile(f"cannot read {path}: {error.strerror}") from error
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise UnreadableEndpointFile(
            f"{path} does not tell how to reach the daemon; restart the daemon, which writes it"
            " anew"
        ) from error


def _content(path: str, *, trusted_only: bool = False) -> bytes:
    # O_NONBLOCK: opening a FIFO must not wait for a writer.
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
    with own(os.open(path, flags), "rb") as file:
        found = os.fstat(file.fileno())
        if not stat.S_ISREG(found.st_mode):
            raise ValueError("not a regular file")
        if trusted_only and os.geteuid() not in (0, found.st_uid) and found.st_uid != 0:
            raise PermissionError("another user's")
        return file.read(_LONGEST_FILE)


def _owner(path: str) -> str:
    try:
        uid = os.stat(path, follow_symlinks=False).st_uid
    except OSError:
        return "another user, in a directory that is closed to this one"
    try:
        return f"user {pwd.getpwuid(uid).pw_name}"
    except KeyError:
        return f"user {uid}"


def _encoded(endpoint: DaemonEndpoint) -> bytes:
    document = {
        "url": endpoint.url,
        "token": endpoint.token,
        "pid": endpoint.process.pid,
        "process_started_at": endpoint.process.started_at,
        "started_at": endpoint.started_at.astimezone(UTC).isoformat(),
        "host": endpoint.host,
        "version": endpoint.version,
        "workflow": endpoint.workflow,
        "isolation": endpoint.isolation,
        "isolation_refused": endpoint.isolation_refused,
    }
    return json.dumps(document, indent=2).encode() + b"\n"


def _decoded(content: bytes) -> DaemonEndpoint:
    """Return what was encoded. Raises ValueError, KeyError or TypeError for anything else."""
    document = json.loads(content)
    url, token = document["url"], document["token"]
    if url is not None and not (isinstance(url, str) and isinstance(token, str)):
        raise TypeError("a URL needs a token")
    started_at = datetime.fromisoformat(_text(document["started_at"]))
    if started_at.tzinfo is None:
        raise ValueError("a time without a zone")
    isolation = document.get("isolation")  # which earlier versions have not told
    return DaemonEndpoint(
        url=url,
        token=token,
        process=ProcessIdentity(
            pid=int(document["pid"]), started_at=float(document["process_started_at"])
        ),
        started_at=started_at,
        host=_text(document["host"]),
        version=_text(document["version"]),
        workflow=_text(document["workflow"]),
        isolation=None if isolation is None else _text(isolation),
        isolation_refused=document.get("isolation_refused") is True,
    )


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError("not a text")
    return value
