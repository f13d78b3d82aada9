"""The settings of ``store``: a PostgreSQL server in place of the file of ``db_path``."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any
from urllib.parse import unquote, urlsplit

from pydantic import BeforeValidator, Field

from sortie.config.block import Block
from sortie.config.fields import fields_of
from sortie.config.references import Lookup
from sortie.config.report import Finding
from sortie.config.values import CheckWithSchema, Line, Secret, milliseconds, needs

_SCHEMES = ("postgresql://", "postgres://")
_FORM = "postgresql://USER:PASSWORD@HOST:PORT/DATABASE"
_SECRET_PART = 8  # a shorter one is a word as often as not, which stands in other texts too

LONGEST_NAME = 63
"""Bytes of a name in PostgreSQL; a longer one is cut, so that two could be the same."""

HEAVIEST = 1000


def _weight() -> BeforeValidator:
    """Accept numbers above 0; in the file a variable may stand for one."""

    def check(value: Any) -> float:
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        if not is_number or not 0 < value <= HEAVIEST:
            raise needs(f"a number above 0, at most {HEAVIEST}")
        return float(value)

    number = {"type": "number", "exclusiveMinimum": 0, "maximum": HEAVIEST}
    return CheckWithSchema(check, shape={"anyOf": [number, {"type": "string", "pattern": r"^\$"}]})


class StoreSettings(Block):
    """Where what must survive a restart is kept; without ``url`` it is a file.

    ``url`` may hold a password, so no message repeats it. ``shared_schema`` is that of all daemons
    of the database; ``lease`` is for how many seconds a daemon leads a workflow without being heard
    of, and ``weight`` how many workflows it is to lead, in proportion to others.
    """

    url: Annotated[Secret | None, Lookup.NEEDED] = None
    schema_name: Annotated[Line, Field(alias="schema")] = "sortie"
    shared_schema: Line = "sortie_shared"
    lease: Annotated[float, milliseconds(15_000, 3_600_000)] = Field(15.0, alias="lease_ms")
    weight: Annotated[float, Lookup.NUMBER, _weight()] = 1.0

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
    for key, info in fields_of(StoreSettings).items():
        field = next(name for name, one in StoreSettings.model_fields.items() if one is info)
        if url is None and getattr(store, field) != info.default:
            message = "means nothing without store.url, and is ignored"
            yield Finding(path=("store", key), message=message, severity="warning")
    for key, name in (("schema", store.schema_name), ("shared_schema", store.shared_schema)):
        if len(name.encode()) > LONGEST_NAME or name.startswith("pg_"):
            message = f"needs a name of at most {LONGEST_NAME} bytes that does not begin with pg_"
            yield Finding(path=("store", key), message=message)
    if store.schema_name == store.shared_schema:
        message = "needs another name than store.schema, which is that of this workflow alone"
        yield Finding(path=("store", "shared_schema"), message=message)
