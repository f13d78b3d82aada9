"""The project or group whose issues are worked on."""

from __future__ import annotations

from msgspec import Struct

from sortie.http.client import segment

PAGE = 100
"""Items of a page, and issues that are asked for at a time; GitLab gives no more."""


class GitLabScope(Struct, frozen=True, kw_only=True):
    """What is worked on: a project or a group, by its number once that is known, or its path."""

    name: str
    is_group: bool = False
    number: int | None = None

    @property
    def path(self) -> str:
        """Return the beginning of its routes."""
        return f"/{'groups' if self.is_group else 'projects'}/{segment(self.number or self.name)}"
