"""People as Jira tells of them."""

from __future__ import annotations

from msgspec import Struct

from sortie.http.json_values import mapping_of, word_of


class Person(Struct, frozen=True, kw_only=True):
    """Somebody; ``id`` is an account id in the cloud, else a user's key; ``login`` is the former,
    else the name by which they log in."""

    id: str
    name: str
    login: str


def person_of(value: object) -> Person:
    """Return somebody as Jira tells of them."""
    told = mapping_of(value)
    names = (word_of(told.get(name)) for name in ("accountId", "key", "name"))
    logins = (word_of(told.get(name)) for name in ("accountId", "name", "key"))
    return Person(
        id=next(filter(None, names), ""),
        name=word_of(told.get("displayName")),
        login=next(filter(None, logins), ""),
    )
