"""The settings of ``store``: a PostgreSQL server in place of the file of ``db_path``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated
from urllib.parse import unquote, urlsplit

from pydantic import Field

from sortie.config.block import Block
from sortie.config.references import Lookup
from sortie.config.report import Finding
from sortie.config.values import Line, Secret

_SCHEMES = ("postgresql://", "postgres://")
_FORM = "postgresql://USER:PASSWORD@HOST:PORT/DATABASE"
_SECRET_PART = 8  # a shorter one is a word as often as not, which stands in other texts too

LONGEST_NAME = 63
"""Bytes of a name in PostgreSQL; a longer one is cut, so that two could be the same."""


SHORTEST_LEASE_MS, LONGEST_LEASE_MS = 15_000, 3_600_000

_DEFAULTS: Mapping[str, object] = {
    "schema": "sortie",
    "shared_schema": "sortie_shared",
    "lease_ms": 15_000,
    "weight": 1.0,
}


class StoreSettings(Block):
    """Where what must survive a restart is kept; without ``url`` it is a file.

    ``url`` may hold a password, so no message repeats it. ``shared_schema`` is that of all daemons
    of the database; ``lease_ms`` is how long a daemon leads a workflow without being heard of, and
    ``weight`` how many workflows it is to lead, in proportion to others.
    """

    url: Annotated[Secret | None, Lookup.ANYWHERE] = None
    schema_name: Annotated[Line, Field(alias="schema")] = "sortie"
    shared_schema: Line = "sortie_shared"
    lease_ms: Annotated[int, Field(ge=SHORTEST_LEASE_MS, le=LONGEST_LEASE_MS)] = 15_000
    weight: Annotated[float, Lookup.ANYWHERE, Field(gt=0, le=1000)] = 1.0

    @property
    def secrets(self) -> frozenset[str]:
        """What no text may hold: the address, and the password in it where it is long enough."""
        if self.url is None:
            return frozenset()
        url = self.url.get_secret_value()
        try:
            written = urlsplit(url).password or ""
        except ValueError:
            written = ""
        parts = {written, unquote(written)}
        return frozenset({url, *(part for part in parts if len(part) >= _SECRET_PART)})


def store_findings(store: StoreSettings) -> Iterator[Finding]:
    """Yield what is wrong with the address of the server, and with the name of the schema."""
    url = None if store.url is None else store.url.get_secret_value().strip()
    if url is not None and not url.startswith(_SCHEMES):
        yield Finding(path=("store", "url"), message=f"needs an address of the form {_FORM}")
    given = {
        "schema": store.schema_name,
        "shared_schema": store.shared_schema,
        "lease_ms": store.lease_ms,
        "weight": store.weight,
    }
    for key, value in given.items():
        if url is None and value != _DEFAULTS[key]:
            message = "means nothing without store.url, and is ignored"
            yield Finding(path=("store", key), message=message, severity="warning")
    for key in ("schema", "shared_schema"):
        name = str(given[key])
        if len(name.encode()) > LONGEST_NAME or name.startswith("pg_"):
            message = f"needs a name of at most {LONGEST_NAME} bytes that does not begin with pg_"
            yield Finding(path=("store", key), message=message)
    if store.schema_name == store.shared_schema:
        message = "needs another name than store.schema, which is that of this workflow alone"
        yield Finding(path=("store", "shared_schema"), message=message)
