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


@pytest.mark.parametrize(
    ("given", "environ", "expected"),
    [("2", {}, 2.0), ("0.5", {}, 0.5), ("$W", {"W": "1.5"}, 1.5), ("${W}", {"W": "3"}, 3.0)],
)
def test_a_machine_may_have_its_own_weight(
    given: str, environ: dict[str, str], expected: float
) -> None:
    """One file serves several machines, whose environments differ."""
    settings = settings_of(
        GOOD + f"store:\n  url: {URL}\n  weight: {given}\n", around(dict(environ))
    )

    assert settings.store.weight == expected


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
        (f"  url: {URL}\n  schema: sortie_shared", "store.shared_schema: needs another name"),
        (f"  url: {URL}\n  weight: 0", "store.weight: needs a number above 0, at most 1000"),
        (f"  url: {URL}\n  weight: $HEAVY", "store.weight: needs a number above 0, at most 1000"),
        (f"  url: {URL}\n  lease_ms: 9000", "store.lease_ms: needs a whole number of milliseconds"),
        ("  lease_ms: 20000", "store.lease_ms: means nothing without store.url, and is ignored"),
    ],
)
def test_what_no_server_takes_is_found(lines: str, found: str) -> None:
    """At its place in the file, without the password."""
    told = findings(GOOD + f"store:\n{lines}\n", around({"HEAVY": "much"}))

    assert len(told) == 1
    assert found in told[0]
    assert "s3cretword" not in told[0]
