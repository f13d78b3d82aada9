"""Which directories exist for which issue.

Rule 1: a directory, that is a path on a host, belongs to one issue: the one that had it last.
Rule 2: an issue may have several, on several hosts or under an earlier identifier or root.
Rule 3: a directory counts as unsaved since it was found, after its issue was finished, to hold work
that is nowhere else, until a run has it again.
Rule 4: a directory is blank while nothing has run in it; after a restart none counts as blank.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from sortie.model import IssueId, KnownWorkspace


class WorkspaceIndex:
    """The known workspaces; an issue without any is not in here."""

    def __init__(
        self,
        known: Iterable[KnownWorkspace] = (),
        unsaved: Mapping[tuple[str, str], float] | None = None,
    ) -> None:
        self._owners: dict[tuple[str, str], IssueId] = {}
        self._of: dict[IssueId, dict[tuple[str, str], KnownWorkspace]] = {}
        self._blank: set[tuple[str, str]] = set()
        self._unsaved: dict[tuple[str, str], float] = {}
        for workspace in known:
            self.keep(workspace)
        self._unsaved.update(unsaved or {})

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

    def unsaved_since(self, known: KnownWorkspace) -> float | None:
        """Return since when a directory counts as unsaved, None where it does not."""
        return self._unsaved.get((known.host, known.path))

    def note_unsaved(self, known: KnownWorkspace, now: float) -> None:
        """Have a directory count as unsaved from now on."""
        self._unsaved[known.host, known.path] = now

    def use(self, issue_id: IssueId, host: str) -> None:
        """Note that something may have run in the directories that an issue has on a host."""
        self._blank -= {place for place in self._of.get(issue_id, {}) if place[0] == host}

    def forget(self, known: KnownWorkspace) -> None:
        """Forget a directory, whichever issue had it."""
        place = (known.host, known.path)
        self._blank.discard(place)
        self._unsaved.pop(place, None)
        owner = self._owners.pop(place, None)
        if owner is not None:
            del self._of[owner][place]
            if not self._of[owner]:
                del self._of[owner]
