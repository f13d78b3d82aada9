"""The issues in files, by id and by identifier, and what is wrong with others."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping

from msgspec import Struct, field
from msgspec.structs import replace

from sortie.model import IssueId, TrackerError, TrackerErrorKind
from sortie.trackers import Overview, UnreadableIssue
from sortie.trackers.file.entries import (
    Complaint,
    IgnoredFile,
    IssueEntry,
    IssueFile,
    MalformedEntry,
)

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


class IssueIndex(Struct, frozen=True, kw_only=True):
    """The issues that can be given, by id, and those that cannot; never changed, only replaced.

    An issue is in one of ``found`` and ``troubles``, never in both. ``files`` are the names of the
    files that hold those found.
    """

    found: Mapping[IssueId, IssueEntry] = field(default_factory=dict)
    files: Mapping[IssueId, str] = field(default_factory=dict)
    identifiers: Mapping[str, IssueEntry] = field(default_factory=dict)
    troubles: Mapping[IssueId, Complaint] = field(default_factory=dict)
    complaints: tuple[Complaint, ...] = ()
    ignored: tuple[Complaint, ...] = ()
    overview: Overview = Overview()

    def require(self, issue_id: IssueId, place: str) -> IssueEntry:
        """Return an issue of this place. Raises TrackerError where it is not there, or unsound."""
        if issue_id in self.troubles:
            raise self.troubles[issue_id].error()
        if issue_id not in self.found:
            message = f"{place}: no issue has the id {issue_id!r}"
            raise TrackerError(TrackerErrorKind.NOT_FOUND, message)
        return self.found[issue_id]

    def files_of(self, ids: Iterable[IssueId]) -> set[str] | None:
        """Return the files that hold these issues, and the issues that block them.

        None where one of all these is not known.
        """
        names: set[str] = set()
        for issue_id in ids:
            if issue_id not in self.found:
                return None
            names.add(self.files[issue_id])
            for blocker in self.found[issue_id].issue.blocked_by:
                if blocker.identifier not in self.identifiers:
                    return None
                names.add(self.files[self.identifiers[blocker.identifier].issue.id])
        return names


class FilesRead(Struct, frozen=True, kw_only=True):
    """The files as last read, by name, and their index; never changed, only replaced.

    ``index`` is the same object as before where no issue has changed.
    """

    documents: Mapping[str, IssueFile] = field(default_factory=dict)
    index: IssueIndex = IssueIndex()
    gone: tuple[GoneIssue, ...] = ()

    def changed(self, changes: Changes) -> FilesRead:
        """Return the reading after these changes: this one itself where there are none."""
        if not changes:
            return self
        changes, gone = traced(changes, self.documents, self.gone)
        documents = {name: doc for name, doc in self.documents.items() if name not in changes}
        documents |= {name: doc for name, doc in changes.items() if doc is not None}
        same = all(_entries(documents, name) is _entries(self.documents, name) for name in changes)
        known = self.index if same else indexed(documents[name] for name in sorted(documents))
        return FilesRead(documents=documents, index=known, gone=gone)


def _entries(documents: Mapping[str, IssueFile], name: str) -> object:
    return documents[name].entries if name in documents else None


def indexed(documents: Iterable[IssueFile]) -> IssueIndex:
    """Return the index of some files: what two of them claim belongs to neither."""
    held = [(doc, entry) for doc in documents for entry in doc.entries]
    holders = [(doc, entry) for doc, entry in held if isinstance(entry, IssueEntry)]
    complaints: list[Complaint] = []
    troubles: dict[IssueId, Complaint] = {}
    for complaint, ids in _clashes(entry for _, entry in holders):
        complaints.append(complaint)
        for issue_id in ids:
            troubles.setdefault(issue_id, complaint)
    sound = [(doc, entry) for doc, entry in holders if entry.issue.id not in troubles]
    found = {entry.issue.id: entry for _, entry in sound}
    for doc, entry in held:
        if isinstance(entry, MalformedEntry):
            complaints.append(_malformed(doc, entry))
            if entry.id is not None and entry.id not in found:
                troubles.setdefault(entry.id, complaints[-1])
    return IssueIndex(
        found=found,
        files={entry.issue.id: doc.name for doc, entry in sound},
        identifiers={entry.issue.identifier: entry for entry in found.values()},
        troubles=troubles,
        complaints=tuple(complaints),
        ignored=tuple(
            Complaint(subject=entry.where, token="", message=entry.message)
            for _, entry in held
            if isinstance(entry, IgnoredFile)
        ),
        overview=Overview(
            issues=tuple(entry.issue for entry in found.values()),
            unreadable=tuple(UnreadableIssue(message=c.message, names=c.names) for c in complaints),
        ),
    )


def _malformed(doc: IssueFile, entry: MalformedEntry) -> Complaint:
    names = _names_of(entry.where)
    if entry.id is not None:
        names.add(entry.id)
    return Complaint(
        subject=entry.where,
        token=doc.digest,
        message=entry.message,
        names=frozenset(names),
        kind=entry.kind,
    )


def _names_of(where: str) -> set[str]:
    return {where, where.rpartition(".")[0] or where}


def _clashes(entries: Iterable[IssueEntry]) -> Iterable[tuple[Complaint, set[IssueId]]]:
    """Yield what is wrong where several entries have one id or one identifier, and their ids."""
    by_id, by_identifier = defaultdict(list), defaultdict(list)
    for entry in entries:
        by_id[entry.issue.id].append(entry)
        by_identifier[entry.issue.identifier].append(entry)
    for word, groups in (("id", by_id), ("identifier", by_identifier)):
        for name, group in groups.items():
            ids = {entry.issue.id for entry in group}
            if len(group) > 1 and (word == "id" or len(ids) > 1):
                places = ", ".join(entry.where for entry in group)
                message = f"{places}: each has the {word} {name!r}; it must be one issue's only"
                names = {name, *ids, *(entry.issue.identifier for entry in group)}
                names |= {n for entry in group for n in _names_of(entry.where)}
                complaint = Complaint(
                    subject=f"{word} {name}",
                    token=places,
                    message=message,
                    names=frozenset(names),
                )
                yield complaint, ids
