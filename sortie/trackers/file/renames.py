"""Notice that an issue has got another id: its file was renamed, or another id written into it.

Without this, the issue under its new id would have no run yet, and a second run would
start beside the one under the old id.

Rule 1: an issue is taken for a former one rather once too often than once too seldom: it only waits
until the run of that one has ended.
Rule 2: what is remembered of issues that are gone is bounded, in number and in names.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from msgspec import Struct
from msgspec.structs import replace

from sortie.model import IssueId
from sortie.trackers.file.entries import IssueEntry, IssueFile

Changes = Mapping[str, IssueFile | None]
"""Files that are new or not what they were, by name; None is one that is gone."""


class GoneIssue(Struct, frozen=True, kw_only=True):
    """An issue that no file holds any more: its ids, the last one last, and how to know it."""

    ids: tuple[IssueId, ...]
    file: tuple[int, int] | None
    digest: str
    title: str | None


GONE_LIMIT = 1000
"""Issues that are gone and remembered, the last ones; their runs end within minutes."""


FORMER_LIMIT = 100
"""Former ids of an issue, the last ones: of issues that come every night with the same title, each
has been all before it."""


def traced(
    changes: Changes, known: Mapping[str, IssueFile], gone: tuple[GoneIssue, ...]
) -> tuple[Changes, tuple[GoneIssue, ...]]:
    """Give changed documents the ids that their issues had, and return what is gone by now."""
    lost = {known[name].known_id() for name in changes if name in known}
    lost -= {document.known_id() for document in changes.values() if document is not None}
    if lost:
        lost -= {document.known_id() for name, document in known.items() if name not in changes}
    vanished = [
        _gone(issue_id, known[name])
        for name in changes
        if name in known and (issue_id := known[name].known_id()) in lost and issue_id is not None
    ]
    gone = (*gone, *vanished)[-GONE_LIMIT:]
    traced_ones = {
        name: None if document is None else _with_former(document, known.get(name), gone)
        for name, document in changes.items()
    }
    return traced_ones, gone


def _gone(issue_id: IssueId, document: IssueFile) -> GoneIssue:
    return GoneIssue(
        ids=(*document.formerly, issue_id),
        file=document.file,
        digest=document.digest,
        title=_title(document),
    )


def _with_former(
    document: IssueFile, old: IssueFile | None, gone: tuple[GoneIssue, ...]
) -> IssueFile:
    own = document.known_id()
    if own is None or (old is not None and document.entries is old.entries):
        return document
    if old is not None and old.known_id() == own:
        former = old.formerly
    else:
        same = [g for g in gone if _may_be(g, document)]
        former = tuple(dict.fromkeys(i for g in same for i in g.ids if i != own))[-FORMER_LIMIT:]
    if not former:
        return document
    entries = tuple(
        replace(entry, issue=replace(entry.issue, formerly=former))
        if isinstance(entry, IssueEntry)
        else entry
        for entry in document.entries
    )
    return replace(document, formerly=former, entries=entries)


def _may_be(gone: GoneIssue, document: IssueFile) -> bool:
    """Tell whether what is gone and what is new are the same file, text or title."""
    same_file = gone.file is not None and gone.file == document.file
    same_title = gone.title is not None and gone.title == _title(document)
    return same_file or same_title or gone.digest == document.digest


def _title(document: IssueFile) -> str | None:
    titles: Iterator[str] = (
        entry.issue.title.casefold() for entry in document.entries if isinstance(entry, IssueEntry)
    )
    return next(titles, None)
