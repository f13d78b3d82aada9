"""What is known of the files, made from what was known before and what has changed since."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from sortie.trackers.file.issue_index import (
    Changes,
    GoneIssue,
    Held,
    IssueFile,
    IssueIndex,
    index,
)
from sortie.trackers.file.renames import traced


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """The files as last read, by name, and what they come to; never changed, only replaced.

    ``index`` is the same object as before where no issue has changed.
    """

    documents: Mapping[str, IssueFile] = field(default_factory=dict)
    index: IssueIndex = field(default_factory=IssueIndex)
    gone: tuple[GoneIssue, ...] = ()

    def changed(self, changes: Changes) -> Reading:
        """Return what is known after these changes: this one itself where there are none.

        Costs by what has changed, but where a file is malformed or a name claimed twice.
        """
        if not changes:
            return self
        changes, gone = traced(changes, self.documents, self.gone)
        documents = dict(self.documents)
        for name, document in changes.items():
            if document is None:
                del documents[name]
            else:
                documents[name] = document
        old = _only_in(self.documents, documents, changes)
        new = _only_in(documents, self.documents, changes)
        known = self.index.exchanged(old, new) if old or new else self.index
        if known is None:
            known = index(documents[name] for name in sorted(documents))
        return Reading(documents=documents, index=known, gone=gone)


def _only_in(
    these: Mapping[str, IssueFile], others: Mapping[str, IssueFile], names: Iterable[str]
) -> list[Held]:
    """Return what files of these names hold here and not there, as the same objects."""
    held: list[Held] = []
    for name in names:
        if name in these:
            elsewhere = {id(entry) for entry in others[name].entries} if name in others else ()
            held += [(name, e) for e in these[name].entries if id(e) not in elsewhere]
    return held
