"""Whose words count: what a tracker can tell of people, and what follows for an issue."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum

from msgspec import Struct

TRUST_LABEL = "sortie:trusted"
"""The label by which somebody vouches for an issue, unless the settings name another."""

_LOWER = str.maketrans("ABCDEFGHIJKLMNOPQRSTUVWXYZ", "abcdefghijklmnopqrstuvwxyz")


def login_key(login: str) -> str:
    """Return the form in which logins are compared: trimmed, in lower case.

    Letters beyond ASCII stay as they are: two of them that look alike are two people.
    """
    return login.strip().translate(_LOWER)


class Right(StrEnum):
    """What is asked of somebody."""

    WRITE = "write"
    """To write to the project or repository."""
    MEMBERS = "members"
    """To belong to the project, its organisation or workspace."""

    @property
    def lacking(self) -> str:
        """What is said of somebody who has it not."""
        if self is Right.WRITE:
            return "may not write to the project"
        return "is no member of the project"


class Edit(Struct, frozen=True, kw_only=True):
    """A change of title or description; ``by`` is the id of its author, None for nobody known."""

    by: str | None
    at: datetime


class Endorsement(Struct, frozen=True, kw_only=True):
    """That a label stands on an issue: who has set it last, and when.

    ``edits`` are the changes of title and description that the tracker tells of; those before the
    label may be among them. ``tells_edits`` is False where it tells of no change of the
    description.
    """

    by: str | None
    at: datetime
    edits: tuple[Edit, ...] = ()
    tells_edits: bool = True


class Trust(Struct, frozen=True, kw_only=True):
    """What is known of the authors of an issue's texts.

    ``distrust`` says why the author's own words do not count, "" where they do; ``holds`` tells
    that the issue is not started for it, and else its title and description are left out.
    ``left_out`` are the authors of the comments that were left out.
    """

    distrust: str = ""
    holds: bool = True
    left_out: tuple[str, ...] = ()
