"""The settings of a server that has the rows: none by default, and none of its password shown."""

from __future__ import annotations

import pytest
from pydantic import SecretStr

from sortie.config.store import StoreSettings
from tests.config.sample import GOOD, around, findings, settings_of

URL = "postgresql://me:s3cretword@db.example/team"


def test_a_file_has_the_rows_by_default() -> None:
    """``db_path`` is where they are."""
    settings = settings_of(GOOD)

    assert settings.database == settings.db_path
    assert settings.store.secrets == frozenset()


def test_a_server_has_them_where_one_is_named() -> None:
    """By its address, or by a variable that no agent inherits."""
    settings = settings_of(GOOD + "store:\n  url: $ROWS\n  schema: app\n", around({"ROWS": URL}))

    assert settings.database == settings.store
    assert settings.store.schema_name == "app"
    assert "ROWS" in settings.secret_variables
    assert settings.store.secrets == {URL, "s3cretword"}
    assert "s3cretword" not in repr(settings)


def test_a_password_is_hidden_as_written_and_as_meant() -> None:
    """A short one is a word that stands in other texts as well."""
    escaped = StoreSettings(url=SecretStr("postgres://me:p%40ss%2Fword@h/d"))
    short = StoreSettings(url=SecretStr("postgres://me:pw@h/d"))

    assert {"p%40ss%2Fword", "p@ss/word"} < escaped.secrets
    assert short.secrets == {"postgres://me:pw@h/d"}


@pytest.mark.parametrize(
    ("lines", "found"),
    [
        ("  url: mysql://me:s3cretword@h/d", "store.url: needs an address of the form postgresql:"),
        ("  schema: app", "store.schema: means nothing without store.url, and is ignored"),
        (f"  url: {URL}\n  schema: pg_app", "store.schema: needs a name of at most 63 bytes"),
        (f"  url: {URL}\n  schema: {'ü' * 32}", "store.schema: needs a name of at most 63 bytes"),
        (f"  url: {URL}\n  schema: ''", "store.schema: "),
    ],
)
def test_what_no_server_takes_is_found(lines: str, found: str) -> None:
    """At its place in the file, without the password."""
    told = findings(GOOD + f"store:\n{lines}\n")

    assert len(told) == 1
    assert found in told[0]
    assert "s3cretword" not in told[0]
