"""What the delivery of a webhook names: issues and pull requests that are to be looked at."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from msgspec import Struct

MOST_NAMES = 100
"""Names of one kind that are taken from one delivery; the others wait for the next poll."""

Part = Literal["all", "talk", "checks"]
"""Which part of a pull request has changed: its reviews, threads and comments (``talk``), the
checks of its head, or anything."""


class Mention(Struct, frozen=True, kw_only=True):
    """What deliveries name in one project or repository, which has the names ``places``.

    ``places`` are in compared form (``place_key``); there are none where a delivery tells none.
    ``issues`` are ids or identifiers of issues. Pull requests are named by their ``numbers``, by
    the ``branches`` that were pushed to, and by ``commits``, which are their heads; ``part`` is
    what of them has changed. ``ping``: the service only tries whether deliveries arrive.
    """

    places: tuple[str, ...] = ()
    issues: tuple[str, ...] = ()
    numbers: tuple[int, ...] = ()
    branches: tuple[str, ...] = ()
    commits: tuple[str, ...] = ()
    part: Part = "all"
    ping: bool = False

    @property
    def about_issues(self) -> bool:
        """Whether it shows that changes of issues are told."""
        return bool(self.issues) or self.ping

    @property
    def about_pull_requests(self) -> bool:
        """Whether it shows that changes of pull requests are told."""
        return bool(self.numbers or self.branches or self.commits) or self.ping


def place_key(name: object) -> str:
    """Return the compared form of a project, a repository, or the path of its web address."""
    return str(name).strip("/ ").casefold()


def joined(mentions: Iterable[Mention]) -> tuple[Mention, ...]:
    """Return mentions with those of one place and part made one, and each name once."""
    found: dict[tuple[Part, tuple[str, ...]], Mention] = {}
    for each in mentions:
        key = each.part, each.places
        known = found.get(key)
        found[key] = each if known is None else _both(known, each)
    return tuple(found.values())


def both_parts(one: Part | None, other: Part) -> Part:
    """Return the part that holds both; None is nothing."""
    return other if one in (None, other) else "all"


def _both(one: Mention, other: Mention) -> Mention:
    return Mention(
        places=one.places,
        part=one.part,
        issues=tuple(dict.fromkeys(one.issues + other.issues)),
        numbers=tuple(dict.fromkeys(one.numbers + other.numbers)),
        branches=tuple(dict.fromkeys(one.branches + other.branches)),
        commits=tuple(dict.fromkeys(one.commits + other.commits)),
        ping=one.ping or other.ping,
    )
