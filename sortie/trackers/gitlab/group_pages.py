"""The pages of a group's list, which stay whole while issues leave the list.

GitLab numbers these pages: an issue that leaves the list moves the first one of each page behind it
to a page that was read. So a page is asked for by the creation of the last issue that was read.
``created_after`` includes its own instant, so that this issue comes once more.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from msgspec.structs import replace

from sortie.trackers.http.requests import Request

_CREATED = "created_after"


class GroupPages:
    """Says what to ask for after each page of a list that is sorted by creation."""

    def __init__(self, first: Request) -> None:
        own = [(name, value) for name, value in first.params if name != _CREATED]
        self._first = replace(first, params=own)
        self._last: datetime | None = None

    def following(self, numbered: Request, last: object) -> Request:
        """Return the page behind the issue ``last``.

        It is the ``numbered`` one, as GitLab has it, where all of a page was made in one instant.
        """
        created = last.get("created_at") if isinstance(last, Mapping) else None
        try:
            at = datetime.fromisoformat(str(created))
            is_later = self._last is None or at > self._last
        except (ValueError, TypeError):
            is_later = False
        if not is_later:
            return numbered
        self._last = at
        return replace(self._first, params=[*self._first.params, (_CREATED, str(created))])
