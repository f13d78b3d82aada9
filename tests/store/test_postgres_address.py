"""Nothing that is told of a server's address holds a password."""

from __future__ import annotations

import traceback

import pytest

from sortie.model import StoreError
from sortie.store.postgres import open_postgres
from sortie.store.postgres_address import parse_address
from tests.store.postgres_server import PostgresServer

SECRET = "p@ss/w%rd:1"
WRITTEN = "p%40ss%2Fw%25rd%3A1"


def whole(error: BaseException) -> str:
    """All that a log could show of an error."""
    return "".join(traceback.format_exception(error)) + repr(error) + repr(error.__context__)


@pytest.mark.parametrize(
    ("url", "name"),
    [
        ("postgresql://me:s3cretword@db.example:5433/team", "team on db.example:5433"),
        ("postgres://me:s3cretword@db.example/team", "team on db.example"),
        ("postgresql://me:s3cretword@a:1,b:2/team", "team on a:1,b:2"),
        ("postgresql://me:s3cretword@[::1]/", "me on ::1"),
        ("postgresql:///team?host=/run/pg&password=s3cretword", "team on /run/pg"),
        ("postgresql://:s3cretword@/", "of this user on the default server"),
    ],
)
def test_a_database_is_called_by_its_place(url: str, name: str) -> None:
    """Not by who uses it, and not by the password."""
    address = parse_address(url, "sortie")

    assert address.name == f"{name}, schema sortie"
    assert "s3cretword" not in repr(address) + str(address)
    assert address.shown(f"text\nwith {url}") in ("text with [redacted]", f"text with {url}")
    assert "s3cretword" not in address.shown(f"text with {url}, s3cretword")


def test_many_hosts_are_asked_for_the_one_that_writes() -> None:
    """After a failover the primary is found, unless the address says otherwise."""
    one, two, any_ = (
        parse_address(url, "sortie").parameters["target_session_attrs"]
        for url in (
            "postgresql://a/team",
            "postgresql://a,b/team",
            "postgresql://a,b/team?target_session_attrs=any",
        )
    )

    assert (one, two, any_) == ("any", "read-write", "any")


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://me:s3cretword@[host/team",
        "postgresql://me:s3cret%zzword@host/team",
        "postgresql://me@host/team?s3cretword=1",
        "mysql://me:s3cretword@host/team",
        "s3cretword",
    ],
)
def test_an_address_that_is_none_is_not_repeated(url: str) -> None:
    """The driver's own message would tell part of it."""
    with pytest.raises(StoreError, match="is no address of a PostgreSQL server") as caught:
        open_postgres(parse_address(url, "sortie"))

    assert "s3cret" not in str(caught.value) + repr(caught.value.__cause__)


@pytest.mark.parametrize("place", ["login", "port"])
def test_what_a_server_refuses_is_told_without_the_password(
    postgres_server: PostgresServer, place: str
) -> None:
    """Also where the password has characters that are written otherwise in an address."""
    port = 1 if place == "port" else postgres_server.port
    url = f"postgresql://me:{WRITTEN}@127.0.0.1:{port}/{place}"

    with pytest.raises(StoreError, match="the server cannot be reached, does not let") as caught:
        open_postgres(parse_address(url, "sortie"))

    assert SECRET not in whole(caught.value)
    assert WRITTEN not in whole(caught.value)
