"""The address of a database on a PostgreSQL server, and what must not be shown of it."""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import unquote, urlsplit

import psycopg
from msgspec import Struct
from msgspec.structs import replace
from psycopg.conninfo import conninfo_to_dict

from sortie.model import StoreError

SHARED_SCHEMA = "sortie_shared"
"""The schema that daemons share, unless the settings name another."""

FORM = "postgresql://USER:PASSWORD@HOST:PORT/DATABASE"

_DEFAULTS: Mapping[str, str | int] = {
    "connect_timeout": 5,
    "application_name": "sortie",
    # A connection whose other end is gone is noticed within half a minute.
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 3,
    "tcp_user_timeout": 15_000,
}
"""What an address says itself has precedence."""


class PostgresAddress(Struct, frozen=True, kw_only=True):
    """Where the tables are: ``parameters`` of a connection, the schema of a workflow, and that
    which all daemons of the database share.

    ``name`` is what messages call the database; ``secrets`` must not stand in any.
    """

    parameters: Mapping[str, str | int]
    schema: str
    shared_schema: str
    name: str
    secrets: tuple[str, ...]

    def __repr__(self) -> str:
        """Return the name, since the parameters hold the password."""
        return f"PostgresAddress({self.name!r})"

    def of_shared_schema(self) -> PostgresAddress:
        """Return the address of the schema that all daemons share."""
        name = self.name.removesuffix(f"schema {self.schema}") + f"schema {self.shared_schema}"
        return replace(self, schema=self.shared_schema, name=name)

    def shown(self, text: object) -> str:
        """Return a text of the driver in one line, without secrets."""
        line = " ".join(str(text).split())
        for secret in self.secrets:
            line = line.replace(secret, "[redacted]")
        return line


def parse_address(url: str, schema: str, shared_schema: str = SHARED_SCHEMA) -> PostgresAddress:
    """Read an address. Raises StoreError, which does not repeat it, as it may hold a password."""
    try:
        written = {name: value for name, value in conninfo_to_dict(url).items() if value}
        raw = urlsplit(url).password or ""
    except (psycopg.Error, ValueError):
        raise StoreError(
            f"store.url is no address of a PostgreSQL server; it has the form {FORM}, in which"
            " special characters of the password are written as %XX"
        ) from None
    written.setdefault("target_session_attrs", "read-write" if "," in _hosts(written) else "any")
    database = written.get("dbname") or written.get("user") or "of this user"
    secrets = {str(written.get("password", "")), raw, unquote(raw), url}
    return PostgresAddress(
        parameters={**_DEFAULTS, **written},
        schema=schema,
        shared_schema=shared_schema,
        name=f"{database} on {_hosts(written)}, schema {schema}",
        secrets=tuple(sorted(filter(None, secrets), key=len, reverse=True)),
    )


def _hosts(written: Mapping[str, object]) -> str:
    hosts = str(written.get("host") or written.get("hostaddr") or "the default server").split(",")
    ports = str(written.get("port") or "").split(",")
    ports = ports * len(hosts) if len(ports) == 1 else ports
    pairs = zip(hosts, ports, strict=False)
    return ",".join(f"{host}:{port}" if port else host for host, port in pairs)
