"""All the issues of one look at the files, by id and by identifier, and what is wrong."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from sortie.model import IssueId, TrackerError, TrackerErrorKind
from sortie.trackers.file.entries import Content, IgnoredFile, IssueEntry, MalformedEntry


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
class Reading:
    """What one look found: issues that can be given by id, and those that cannot.

    An issue is in one of ``found`` and ``troubles``, never in both.
    """

    documents: Mapping[str, IssueFile] = field(default_factory=dict)
    found: Mapping[IssueId, IssueEntry] = field(default_factory=dict)
    files: Mapping[IssueId, str] = field(default_factory=dict)  # names of those found
    identifiers: Mapping[str, IssueEntry] = field(default_factory=dict)
    troubles: Mapping[IssueId, ReadFailure] = field(default_factory=dict)
    complaints: tuple[Complaint, ...] = ()
    ignored: tuple[Complaint, ...] = ()
    gone: tuple[GoneIssue, ...] = ()


def index(documents: Mapping[str, IssueFile], gone: tuple[GoneIssue, ...] = ()) -> Reading:
    """Put documents together: what two of them claim belongs to neither."""
    holders = [
        (doc, e) for doc in documents.values() for e in doc.entries if isinstance(e, IssueEntry)
    ]
    found = {entry.issue.id: entry for _, entry in holders}
    files = {entry.issue.id: doc.name for doc, entry in holders}
    identifiers = {entry.issue.identifier: entry for entry in found.values()}
    complaints: list[Complaint] = []
    troubles: dict[IssueId, ReadFailure] = {}
    if len(found) < len(holders) or len(identifiers) < len(found):
        for complaint, ids in _clashes(entry for _, entry in holders):
            complaints.append(complaint)
            for issue_id in ids:
                trouble = ReadFailure(kind=TrackerErrorKind.INVALID, message=complaint.message)
                troubles.setdefault(issue_id, trouble)
        found = {i: entry for i, entry in found.items() if i not in troubles}
        identifiers = {entry.issue.identifier: entry for entry in found.values()}
    for doc in documents.values():
        for entry in doc.entries:
            if isinstance(entry, MalformedEntry):
                names = _names_of(entry.where)
                if entry.id is not None:
                    names.add(entry.id)
                complaints.append(
                    Complaint(
                        subject=entry.where,
                        token=doc.digest,
                        message=entry.message,
                        names=frozenset(names),
                    )
                )
                if entry.id is not None and entry.id not in found:
                    trouble = ReadFailure(kind=entry.kind, message=entry.message)
                    troubles.setdefault(entry.id, trouble)
    return Reading(
        documents=documents,
        found=found,
        files=files,
        identifiers=identifiers,
        troubles=troubles,
        complaints=tuple(complaints),
        ignored=tuple(
            Complaint(subject=entry.where, token="", message=entry.message)
            for doc in documents.values()
            for entry in doc.entries
            if isinstance(entry, IgnoredFile)
        ),
        gone=gone,
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
