"""The settings of ``store``: a PostgreSQL server in place of the file of ``db_path``."""

from __future__ import annotations

from collections.abc import Iterator
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


class StoreSettings(Block):
    """Where what must survive a restart is kept; without ``url`` it is a file.

    ``url`` may hold a password, so no message repeats it.
    """

    url: Annotated[Secret | None, Lookup.ANYWHERE] = None
    schema_name: Annotated[Line, Field(alias="schema")] = "sortie"

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
    if url is None and store.schema_name != StoreSettings().schema_name:
        message = "means nothing without store.url, and is ignored"
        yield Finding(path=("store", "schema"), message=message, severity="warning")
    name = store.schema_name
    if len(name.encode()) > LONGEST_NAME or name.startswith("pg_"):
        message = f"needs a name of at most {LONGEST_NAME} bytes that does not begin with pg_"
        yield Finding(path=("store", "schema"), message=message)
