"""All the issues of some files, by id and by identifier, and what is wrong with others."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import field, replace

from sortie.dataclass import dataclass
from sortie.model import IssueId, TrackerError, TrackerErrorKind
from sortie.trackers.file.entries import (
    Content,
    Entry,
    IgnoredFile,
    IssueEntry,
    MalformedEntry,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class IssueFile:
    """A file as last read; ``stamp`` is its status, None where it must be read again anyhow.

    ``file`` is its device and inode, None where unknown. ``formerly`` are ids that its issue may
    have had before.
    """

    name: str
    stamp: tuple[int, ...] | None
    digest: str
    entries: Content
    file: tuple[int, int] | None = None
    formerly: tuple[IssueId, ...] = ()

    def known_id(self) -> IssueId | None:
        """Return the id of the one issue it holds, or a guess where that cannot be read."""
        match self.entries:
            case (IssueEntry(issue=issue),):
                return issue.id
            case (MalformedEntry(id=guess),):
                return guess
            case _:
                return None


Held = tuple[str, Entry | IgnoredFile]
"""Something that a file holds, after the file's name."""

Changes = Mapping[str, IssueFile | None]
"""Files that are new or not what they were, by name; None is one that is gone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GoneIssue:
    """An issue that no file holds any more: its ids, the last one last, and how to know it."""

    ids: tuple[IssueId, ...]
    file: tuple[int, int] | None
    digest: str
    title: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Complaint:
    """Something that people should be told of once; ``token`` changes when it is news again.

    ``names`` are those of the issues that cannot be given because of it.
    """

    subject: str
    token: str
    message: str
    names: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadFailure:
    """Why an issue that exists cannot be given."""

    kind: TrackerErrorKind
    message: str

    def error(self) -> TrackerError:
        """Return the error to raise or to hand over."""
        return TrackerError(self.kind, self.message)


@dataclass(frozen=True, slots=True, kw_only=True)
class IssueIndex:
    """The issues that can be given, by id, and those that cannot; never changed, only replaced.

    An issue is in one of ``found`` and ``troubles``, never in both.
    """

    found: Mapping[IssueId, IssueEntry] = field(default_factory=dict)
    files: Mapping[IssueId, str] = field(default_factory=dict)  # names of those found
    identifiers: Mapping[str, IssueEntry] = field(default_factory=dict)
    troubles: Mapping[IssueId, ReadFailure] = field(default_factory=dict)
    complaints: tuple[Complaint, ...] = ()
    ignored: tuple[Complaint, ...] = ()
    has_clashes: bool = False
    hinted: frozenset[IssueId] = frozenset()  # ids that malformed issues may have

    def require(self, issue_id: IssueId, place: str) -> None:
        """Raise TrackerError unless an issue was found in this place, and is sound."""
        trouble = self.troubles.get(issue_id)
        if trouble is not None:
            raise trouble.error()
        if issue_id not in self.found:
            message = f"{place}: no issue has the id {issue_id!r}"
            raise TrackerError(TrackerErrorKind.NOT_FOUND, message)

    def files_of(self, ids: Iterable[IssueId]) -> set[str] | None:
        """Return the files that say how these issues stand, and how what blocks them does.

        None where that cannot be told because one of all these is not known.
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

    def exchanged(self, old: Iterable[Held], new: Iterable[Held]) -> IssueIndex | None:
        """Return the index with some entries in the place of others.

        None where what is malformed, or claimed twice, has a part in it: ``index`` tells then.
        """
        before, after = _by_id(old), _by_id(new)
        if before is None or after is None or self.has_clashes:
            return None
        if not self.hinted.isdisjoint(before.keys() | after.keys()):
            return None
        found, files, identifiers = dict(self.found), dict(self.files), dict(self.identifiers)
        for issue_id in before.keys() - after.keys():
            del found[issue_id], files[issue_id]
        kept = {entry.issue.identifier for _, entry in after.values()}
        for _, entry in before.values():
            if entry.issue.identifier not in kept:
                del identifiers[entry.issue.identifier]
        for issue_id, (name, entry) in after.items():
            holder = identifiers.get(entry.issue.identifier)
            if (holder is not None and holder.issue.id not in before) or (
                issue_id in found and issue_id not in before
            ):
                return None
            found[issue_id], files[issue_id] = entry, name
            identifiers[entry.issue.identifier] = entry
        return replace(self, found=found, files=files, identifiers=identifiers)


def index(documents: Iterable[IssueFile]) -> IssueIndex:
    """Put documents together: what two of them claim belongs to neither."""
    held = [(doc, entry) for doc in documents for entry in doc.entries]
    holders = [(doc, entry) for doc, entry in held if isinstance(entry, IssueEntry)]
    found = {entry.issue.id: entry for _, entry in holders}
    identifiers = {entry.issue.identifier: entry for entry in found.values()}
    complaints: list[Complaint] = []
    troubles: dict[IssueId, ReadFailure] = {}
    has_clashes = len(found) < len(holders) or len(identifiers) < len(found)
    if has_clashes:
        for complaint, ids in _clashes(entry for _, entry in holders):
            complaints.append(complaint)
            for issue_id in ids:
                trouble = ReadFailure(kind=TrackerErrorKind.INVALID, message=complaint.message)
                troubles.setdefault(issue_id, trouble)
        found = {i: entry for i, entry in found.items() if i not in troubles}
        identifiers = {entry.issue.identifier: entry for entry in found.values()}
    malformed = [(doc, entry) for doc, entry in held if isinstance(entry, MalformedEntry)]
    for doc, bad in malformed:
        complaints.append(_malformed(doc, bad))
        if bad.id is not None and bad.id not in found:
            troubles.setdefault(bad.id, ReadFailure(kind=bad.kind, message=bad.message))
    return IssueIndex(
        found=found,
        files={e.issue.id: doc.name for doc, e in holders if e.issue.id in found},
        identifiers=identifiers,
        troubles=troubles,
        complaints=tuple(complaints),
        ignored=tuple(
            Complaint(subject=entry.where, token="", message=entry.message)
            for _, entry in held
            if isinstance(entry, IgnoredFile)
        ),
        has_clashes=has_clashes,
        hinted=frozenset(bad.id for _, bad in malformed if bad.id is not None),
    )


def _by_id(held: Iterable[Held]) -> dict[IssueId, tuple[str, IssueEntry]] | None:
    """Return entries by id; None where not all are issues, or two of them have one name."""
    by_id: dict[IssueId, tuple[str, IssueEntry]] = {}
    identifiers: set[str] = set()
    for name, entry in held:
        if not isinstance(entry, IssueEntry) or entry.issue.id in by_id:
            return None
        by_id[entry.issue.id] = name, entry
        identifiers.add(entry.issue.identifier)
    return by_id if len(identifiers) == len(by_id) else None


def _malformed(doc: IssueFile, entry: MalformedEntry) -> Complaint:
    names = _names_of(entry.where)
    if entry.id is not None:
        names.add(entry.id)
    return Complaint(
        subject=entry.where, token=doc.digest, message=entry.message, names=frozenset(names)
    )


def _all_names(group: Iterable[IssueEntry]) -> set[str]:
    """Return every name by which people may ask for one of these."""
    names: set[str] = set()
    for entry in group:
        names |= {entry.issue.identifier, *_names_of(entry.where)}
    return names


def _names_of(where: str) -> set[str]:
    return {where, where.rpartition(".")[0] or where}


def _clashes(entries: Iterable[IssueEntry]) -> Iterable[tuple[Complaint, set[IssueId]]]:
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
                complaint = Complaint(
                    subject=f"{word} {name}",
                    token=places,
                    message=message,
                    names=frozenset({name, *ids, *_all_names(group)}),
                )
                yield complaint, ids
