"""What several services have in their payloads: names of repositories, issues and commits.

Payloads are decoded into structs with the few fields that are needed; all else is skipped without
being kept, so that a large body takes no more memory than it has bytes.
"""

from __future__ import annotations

from collections.abc import Iterable
from urllib.parse import urlsplit

from msgspec import Struct
from msgspec.structs import replace

from sortie.model.webhooks import MOST_NAMES, Mention, Part, place_key

LONGEST_NAME = 500
"""Characters of the longest name that is taken from a delivery."""

BRANCHES = "refs/heads/"
"""How the reference of a branch begins."""


class HookedRepository(Struct):
    """A repository of GitHub or Gitea."""

    full_name: str | None = None
    html_url: str | None = None

    @property
    def places(self) -> tuple[str, ...]:
        """Its names."""
        return places_of(self.full_name, path_of(self.html_url))


def path_of(address: str | None) -> str | None:
    """Return the path of a web address, None where it has none."""
    try:
        return urlsplit(address).path if address else None
    except ValueError:
        return None


def places_of(*names: object) -> tuple[str, ...]:
    """Return the names of a place, each once in compared form."""
    found = dict.fromkeys(place_key(name) for name in names if name)
    return tuple(name for name in found if name and len(name) <= LONGEST_NAME)


def names(given: Iterable[str | int | None]) -> tuple[str, ...]:
    """Return the names that are there, each once, not more than are taken of one delivery."""
    found = dict.fromkeys(str(name) for name in given if name)
    return tuple(name for name in found if len(name) <= LONGEST_NAME)[:MOST_NAMES]


def numbers(given: Iterable[int | None]) -> tuple[int, ...]:
    """Return the numbers that are there, each once, not more than are taken of one delivery."""
    return tuple(dict.fromkeys(number for number in given if number))[:MOST_NAMES]


def branch_of(reference: str | None) -> str | None:
    """Return the branch that a reference names; None for a tag, and where there is none."""
    if reference is None or not reference.startswith(BRANCHES):
        return None
    return reference.removeprefix(BRANCHES)


def told_of(found: Mention, part: Part) -> Mention | None:
    """Return a mention with the part of pull requests that has changed; None where it names
    nothing."""
    if found == Mention(places=found.places):
        return None
    return replace(found, part=part) if found.about_pull_requests else found
