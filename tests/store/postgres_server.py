"""A PostgreSQL server of the tests' own: made in a directory, ended and begun again at will.

It runs as an ordinary user, since PostgreSQL refuses root, and dies with the process of the tests.
"""

from __future__ import annotations

import ctypes
import os
import pwd
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory

import psycopg
import pytest

PASSWORD = "hush-0000-hush"
"""The password of the server's user; it must never be shown."""

MACHINES = "10.214.0.0/16"
"""The network of machines of daemons, which some tests make."""

_FOLDERS = ("/usr/lib/postgresql", "/usr/local/pgsql")
OTHER_VERSION = "SORTIE_TEST_POSTGRES"
"""The environment variable that names the directory of programs of another version."""

_FAST: Mapping[str, object] = {
    "shared_buffers": "8MB",
    "fsync": "off",
    "max_connections": 30,
    "autovacuum": "off",
    "log_statement": "none",
}
_DIE_WITH_PARENT = 1  # PR_SET_PDEATHSIG


def program(name: str) -> str:
    """Return a program of PostgreSQL's; skip the test, visibly, where none is installed."""
    found = shutil.which(name)
    inside = [Path(os.environ[OTHER_VERSION], name)] if OTHER_VERSION in os.environ else []
    inside += [
        path / "bin" / name
        for folder in _FOLDERS
        for path in (Path(folder), *sorted(Path(folder).glob("*"), reverse=True))
    ]
    for path in inside:
        if os.access(path, os.X_OK):
            return str(path)
    if found is None:
        pytest.skip("needs PostgreSQL (Debian: apt-get install postgresql)")
    return found


def _user() -> dict[str, object]:
    """Return as whom the server runs."""
    if os.geteuid() != 0:
        return {}
    nobody = pwd.getpwnam("nobody")
    return {"user": nobody.pw_uid, "group": nobody.pw_gid, "extra_groups": []}


def as_server_user(directory: Path) -> None:
    """Give a directory to the user as whom servers run."""
    if os.geteuid() == 0:
        os.chown(directory, *(_user()[key] for key in ("user", "group")))  # type: ignore[arg-type]


class PostgresServer:
    """A server on a free port and a socket in ``directory``; schemas are numbered."""

    def __init__(self, directory: Path, settings: Mapping[str, object]) -> None:
        self.directory = directory
        self.settings = {**_FAST, **settings}
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.port = free.getsockname()[1]
        self._numbers = count(1)
        self.process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        """The address of its database, with the password."""
        return f"postgresql://sortie:{PASSWORD}@127.0.0.1:{self.port}/sortie"

    def schema(self) -> str:
        """Return the name of a schema that nobody has yet."""
        return f"s{os.getpid()}_{next(self._numbers)}"

    def make(self) -> None:
        """Make the files of the server."""
        as_server_user(self.directory)
        secret = self.directory / "password"
        secret.write_text(PASSWORD)
        secret.chmod(0o644)
        options = ("--no-sync", "--auth=scram-sha-256", "--encoding=UTF8", "--locale=C.UTF-8")
        self.run_program("initdb", "-D", "data", "-U", "sortie", f"--pwfile={secret}", *options)
        with (self.directory / "data/pg_hba.conf").open("a") as file:
            file.write(f"host all all {MACHINES} scram-sha-256\n")

    def run_program(self, name: str, *words: str) -> None:
        """Run a program of PostgreSQL's in the directory, as the user of the server."""
        subprocess.run(
            [program(name), *words],
            check=True,
            stdout=subprocess.DEVNULL,
            cwd=self.directory,
            **_user(),  # type: ignore[call-overload]
        )

    def start(self, **settings: object) -> None:
        """Begin the server, and wait until it answers."""
        words = [
            f"--{name}={value}"
            for name, value in {
                "port": self.port,
                "listen_addresses": "127.0.0.1",
                "unix_socket_directories": self.directory,
                **self.settings,
                **settings,
            }.items()
        ]
        log = (self.directory / "log").open("ab")
        self.process = subprocess.Popen(
            [program("postgres"), "-D", str(self.directory / "data"), *words],
            stdout=log,
            stderr=log,
            cwd=self.directory,
            preexec_fn=_die_with_parent,
            **_user(),  # type: ignore[call-overload]
        )
        log.close()
        patience = time.monotonic() + 120
        while True:
            try:
                self.ask("SELECT 1", database="postgres")
                break
            except psycopg.OperationalError:
                if self.process.poll() is not None or time.monotonic() > patience:
                    raise AssertionError((self.directory / "log").read_text()) from None
                time.sleep(0.02)
        there = self.ask("SELECT 1 FROM pg_database WHERE datname = 'sortie'", database="postgres")
        if not there:
            self.ask("CREATE DATABASE sortie", database="postgres")

    def stop(self, number: int = signal.SIGINT) -> None:
        """End the server, by default in order but at once, and wait until it is gone."""
        if self.process is not None:
            self.process.send_signal(number)
            self.process.wait()
            self.process = None

    def kill(self) -> None:
        """Kill the server and all its processes."""
        assert self.process is not None
        out = subprocess.run(
            ["ps", "-o", "pid=", "--ppid", str(self.process.pid)],
            stdout=subprocess.PIPE,
            text=True,
            check=False,
        ).stdout
        self.stop(signal.SIGKILL)
        for pid in out.split():
            try:
                os.kill(int(pid), signal.SIGKILL)
            except ProcessLookupError:
                continue
        (self.directory / "data" / "postmaster.pid").unlink(missing_ok=True)

    def ask(
        self, statement: str, *values: object, database: str = "sortie"
    ) -> list[tuple[object, ...]]:
        """Run a statement as the server's own user, in a session of its own."""
        with psycopg.connect(
            host="127.0.0.1",
            port=self.port,
            user="sortie",
            password=PASSWORD,
            dbname=database,
            autocommit=True,
        ) as connection:
            cursor = connection.execute(statement.encode(), values or None)
            return cursor.fetchall() if cursor.description else []

    def sessions(self) -> list[int]:
        """Return the pids of the sessions of stores."""
        return [
            int(str(pid))
            for (pid,) in self.ask(
                "SELECT pid FROM pg_stat_activity WHERE application_name LIKE 'sortie%%'"
            )
        ]


@contextmanager
def postgres_running(megabytes: int = 0, **settings: object) -> Iterator[PostgresServer]:
    """Give a server that is there for the block, with a disk of its own where a size is given.

    Its directory lies where its user may reach it, which pytest's own does not.
    """
    with ExitStack() as undo:
        directory = undo.enter_context(
            TemporaryDirectory(prefix="sortie-postgres-", ignore_cleanup_errors=True)
        )
        if megabytes:
            mount_disk(directory, megabytes)
            undo.callback(subprocess.run, ["umount", directory], check=True)
        server = PostgresServer(Path(directory), settings)
        server.make()
        server.start()
        try:
            yield server
        finally:
            server.stop()


def mount_disk(directory: str, megabytes: int) -> None:
    """Mount a small disk; skip the test, visibly, where that is not allowed."""
    command = ["mount", "-t", "tmpfs", "-o", f"size={megabytes}m", "tmpfs", directory]
    try:
        subprocess.run(command, check=True, capture_output=True, text=True)
    except (OSError, subprocess.CalledProcessError) as error:
        pytest.skip(f"no small disk can be mounted: {getattr(error, 'stderr', error)}")


def _die_with_parent() -> None:
    ctypes.CDLL(None).prctl(_DIE_WITH_PARENT, signal.SIGQUIT)
