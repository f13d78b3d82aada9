"""A standby of a PostgreSQL server: a copy that follows, and can take its place."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.store.postgres_server import (
    PASSWORD,
    PostgresServer,
    as_server_user,
    postgres_running,
)

NAME = "standby"
"""What ``synchronous_standby_names`` may call it."""


class PostgresStandby(PostgresServer):
    """A server that streams from another one, until it is promoted."""

    def __init__(self, directory: Path, primary: PostgresServer) -> None:
        super().__init__(directory, {"fsync": "on"})
        self.primary = primary

    def make(self) -> None:
        """Copy the files of the primary."""
        as_server_user(self.directory)
        source = (
            f"host=127.0.0.1 port={self.primary.port} user=sortie password={PASSWORD}"
            f" application_name={NAME}"
        )
        self.run_program(
            "pg_basebackup", "-D", "data", "-R", "-c", "fast", "--no-sync", "-d", source
        )

    def promote(self) -> None:
        """Have it take writes."""
        self.run_program("pg_ctl", "promote", "-D", "data", "-w", "-t", "120")


@contextmanager
def postgres_pair(*, synchronous: bool) -> Iterator[tuple[PostgresServer, PostgresStandby]]:
    """Give a primary with a standby that follows it, and that each of its commits waits for where
    ``synchronous`` is set."""
    with (
        postgres_running(fsync="on") as primary,
        TemporaryDirectory(prefix="sortie-standby-", ignore_cleanup_errors=True) as directory,
    ):
        standby = PostgresStandby(Path(directory), primary)
        standby.make()
        standby.start()
        try:
            if synchronous:
                primary.ask(f"ALTER SYSTEM SET synchronous_standby_names = '{NAME}'")
                primary.ask("SELECT pg_reload_conf()")
            _wait_for_streaming(primary, "sync" if synchronous else "async")
            yield primary, standby
        finally:
            standby.stop()


def url_of(*servers: PostgresServer) -> str:
    """Return the address that names these servers, the first one first."""
    hosts = ",".join(f"127.0.0.1:{server.port}" for server in servers)
    return f"postgresql://sortie:{PASSWORD}@{hosts}/sortie"


def _wait_for_streaming(primary: PostgresServer, state: str) -> None:
    patience = time.monotonic() + 120
    while primary.ask("SELECT sync_state FROM pg_stat_replication") != [(state,)]:
        assert time.monotonic() < patience, "the standby does not follow"
        time.sleep(0.05)
