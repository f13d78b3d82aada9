"""Which directories exist for which issue.

Rule 1: a directory, that is a path on a host, belongs to one issue: the one that had it last.
Rule 2: an issue may have several, on several hosts or under an earlier identifier or root.
Rule 3: a directory is blank while nothing has run in it; after a restart none counts as blank.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from sortie.model import IssueId, KnownWorkspace


class WorkspaceIndex:
    """The known workspaces; an issue without any is not in here."""

    def __init__(self, known: Iterable[KnownWorkspace] = ()) -> None:
        self._owners: dict[tuple[str, str], IssueId] = {}
        self._of: dict[IssueId, dict[tuple[str, str], KnownWorkspace]] = {}
        self._blank: set[tuple[str, str]] = set()
        for workspace in known:
            self.keep(workspace)

    def __contains__(self, issue_id: IssueId) -> bool:
        return issue_id in self._of

    def __iter__(self) -> Iterator[IssueId]:
        return iter(self._of)

    def of(self, issue_id: IssueId) -> tuple[KnownWorkspace, ...]:
        """Return an issue's directories; the one that it was given last comes last."""
        return tuple(self._of.get(issue_id, {}).values())

    def all_blank(self, issue_id: IssueId, host: str) -> bool:
        """Tell whether nothing has run in the directories that an issue has on a host."""
        places = self._of.get(issue_id, {})
        return all(place in self._blank for place in places if place[0] == host)

    def keep(self, known: KnownWorkspace, *, new: bool = False) -> None:
        """Remember a directory, which now belongs to its issue and no other; it is blank where
        it is new, or was blank when the issue had it before."""
        place = (known.host, known.path)
        blank = new or (place in self._blank and self._owners[place] == known.issue_id)
        self.forget(known)
        if blank:
            self._blank.add(place)
        self._owners[place] = known.issue_id
        self._of.setdefault(known.issue_id, {})[place] = known

    def use(self, issue_id: IssueId, host: str) -> None:
        """Note that something may have run in the directories that an issue has on a host."""
        self._blank -= {place for place in self._of.get(issue_id, {}) if place[0] == host}

    def forget(self, known: KnownWorkspace) -> None:
        """Know of a directory no more, whoever had it."""
        place = (known.host, known.path)
        self._blank.discard(place)
        owner = self._owners.pop(place, None)
        if owner is not None:
            del self._of[owner][place]
            if not self._of[owner]:
                del self._of[owner]
