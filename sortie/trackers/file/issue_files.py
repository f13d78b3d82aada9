"""The files of issues: looked at, and changed, by plain blocking calls that run in a thread."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from hashlib import sha256
from pathlib import Path

from sortie.model import IssueId, TrackerError, TrackerErrorKind, same_state
from sortie.resources import shortage_behind
from sortie.trackers.file import disk
from sortie.trackers.file.entries import (
    Change,
    Content,
    FileFormat,
    IssueEntry,
    MalformedEntry,
    SetState,
)
from sortie.trackers.file.fields import one_line
from sortie.trackers.file.issue_index import IssueFile, Reading, index
from sortie.trackers.file.json_list import IssueList
from sortie.trackers.file.markdown import Markdown, is_issue_name, stem_of
from sortie.trackers.file.renames import traced

TRIES = 3
"""How often a change is tried anew after somebody else changed the file meanwhile."""

_SETTLED_AFTER = 2_000_000_000
"""Nanoseconds after which a change of a file is sure to change its times, on any file system."""


class IssueFiles:
    """A directory of Markdown issues, or one JSON file: whichever the path is at the time.

    Holds nothing of what it read: the caller hands over what it knows and gets what is new.
    """

    def __init__(self, path: Path, calls: disk.Syscalls | None = None) -> None:
        self._path = path
        self._calls = calls or disk.Syscalls()

    def look(self, known: Reading, at: float) -> Reading:
        """Read what changed since, ``at`` is Unix seconds. Raises TrackerError."""
        with self._translated("read issues from"):
            folder, file_format, names = self._listing()
            documents: dict[str, IssueFile] = {}
            for name, status in names:
                old = known.documents.get(name)
                if old is not None and status is not None and old.stamp == disk.stamp(status):
                    documents[name] = old
                    continue
                read = _document(folder / name, file_format, old, at)
                if read is not None:
                    documents[name] = read
        if _are_same(documents, known.documents):
            return known
        return index(*traced(documents, known.documents, known.gone))

    def change(
        self, known: Reading, issue_id: IssueId, expected: str | None, change: Change
    ) -> tuple[Reading, IssueEntry]:
        """Make a change durable, and return it with what was read around it.

        With ``expected``, the issue must be in that state. Raises TrackerError and LockTaken.
        """
        with self._translated("change an issue in"):
            folder, _, _ = self._listing()
            with disk.locked(folder):
                disk.remove_leftovers(folder)
                for _ in range(TRIES):
                    known = self.look(known, 0.0)
                    changed = self._try(known, issue_id, expected, change)
                    if changed is not None:
                        return known, changed
        raise TrackerError(
            TrackerErrorKind.UNAVAILABLE,
            f"issue {issue_id!r} was changed by somebody else {TRIES} times meanwhile",
        )

    def _try(
        self, reading: Reading, issue_id: IssueId, expected: str | None, change: Change
    ) -> IssueEntry | None:
        """Make a change once; None where the file is no longer what was read."""
        _raise_unless_found(reading, issue_id, self._path)
        folder, file_format, _ = self._listing()
        name = reading.files[issue_id]
        try:
            raw, _ = disk.read(folder / name, file_format.limit)
        except (FileNotFoundError, disk.NotAFile):
            return None
        except OSError as exc:
            raise disk.translated(exc, f"cannot change issue {issue_id!r}") from exc
        present = _pick(file_format.read(name, raw, issue_id), issue_id)
        if present is None:
            return None
        if expected is not None and not same_state(present.issue.state, expected):
            raise TrackerError(
                TrackerErrorKind.CONFLICT,
                f"{present.where}: issue {present.issue.identifier} is in state "
                f"{present.issue.state!r}, no longer in {expected!r}",
            )
        if isinstance(change, SetState) and change.state == present.issue.state:
            return present
        new = file_format.rewrite(name, raw, present.issue, change)
        if len(new) > file_format.limit:
            raise TrackerError(
                TrackerErrorKind.INVALID,
                f"{present.where}: would become larger than {file_format.limit} bytes",
            )
        if not disk.replace_if_same(folder / name, raw, new, self._calls):
            return None
        return _pick(file_format.read(name, new, issue_id), issue_id)

    def _listing(self) -> tuple[Path, FileFormat, Iterator[tuple[str, os.stat_result | None]]]:
        status = os.stat(self._path)
        if stat.S_ISDIR(status.st_mode):
            return self._path, Markdown(), _names(self._path)
        if stat.S_ISREG(status.st_mode):
            real = self._path.resolve()
            return real.parent, IssueList(), iter([(real.name, status)])
        raise TrackerError(
            TrackerErrorKind.UNAVAILABLE, f"{self._path}: neither a directory nor a file"
        )

    @contextmanager
    def _translated(self, attempt: str) -> Iterator[None]:
        try:
            yield
        except (FileNotFoundError, NotADirectoryError) as exc:
            raise TrackerError(
                TrackerErrorKind.CLOSED,
                f"cannot {attempt} {self._path}: it is not there; put it back or set file.path",
            ) from exc
        except OSError as exc:
            translated = disk.translated if disk.forbids_one(exc) else disk.closed
            raise translated(exc, f"cannot {attempt} {self._path}") from exc


def _names(folder: Path) -> Iterator[tuple[str, os.stat_result | None]]:
    """Yield the names of issue files."""
    with os.scandir(folder) as entries:
        listed = sorted(
            (e for e in entries if is_issue_name(e.name)),
            key=lambda entry: entry.name,
        )
    for entry in listed:
        try:
            if not entry.is_dir(follow_symlinks=False):
                yield entry.name, entry.stat(follow_symlinks=False)
        except FileNotFoundError:
            continue
        except OSError as exc:
            if shortage_behind(exc) is not None:
                raise
            yield entry.name, None


def _document(
    path: Path, file_format: FileFormat, old: IssueFile | None, at: float
) -> IssueFile | None:
    """Read a file, None where it is gone; what is unsettled at ``at`` will be read again."""
    known = old.known_id() if old else None
    try:
        raw, status = disk.read(path, file_format.limit)
    except FileNotFoundError:
        return None
    except (OSError, disk.NotAFile) as exc:
        if shortage_behind(exc) is not None:
            raise  # nothing is wrong with this file
        return _unreadable(path, file_format, exc, known)
    digest = sha256(raw).hexdigest()
    changed = max(status.st_mtime_ns, status.st_ctime_ns)
    mark = disk.stamp(status) if changed < at * 1e9 - _SETTLED_AFTER else None
    if old is not None and old.digest == digest:
        file = (status.st_dev, status.st_ino)
        same = old.stamp == mark and old.file == file
        return old if same else replace(old, stamp=mark, file=file)
    entries = file_format.read(path.name, raw, known)
    return IssueFile(
        name=path.name,
        stamp=mark,
        digest=digest,
        entries=entries,
        file=(status.st_dev, status.st_ino),
    )


def _unreadable(
    path: Path, file_format: FileFormat, exc: Exception, known: IssueId | None
) -> IssueFile:
    """Return what stands for one file of many that could not be read; it is tried each time."""
    where = one_line(path.name)
    if isinstance(exc, OSError):
        if not isinstance(file_format, Markdown):
            raise exc
        error = disk.translated(exc, where)
        kind, message = error.kind, str(error)
    else:
        kind, message = TrackerErrorKind.INVALID, f"{where}: {exc}"
        if not isinstance(file_format, Markdown):
            raise TrackerError(TrackerErrorKind.UNAVAILABLE, message) from exc
    guess = known or IssueId(stem_of(path.name))
    malformed = MalformedEntry(id=guess, where=where, message=message, kind=kind)
    return IssueFile(name=path.name, stamp=None, digest=message, entries=(malformed,))


def _raise_unless_found(reading: Reading, issue_id: IssueId, path: Path) -> None:
    trouble = reading.troubles.get(issue_id)
    if trouble is not None:
        raise trouble.error()
    if issue_id not in reading.found:
        raise TrackerError(TrackerErrorKind.NOT_FOUND, f"{path}: no issue has the id {issue_id!r}")


def _pick(entries: Content, issue_id: IssueId) -> IssueEntry | None:
    found = (e for e in entries if isinstance(e, IssueEntry) and e.issue.id == issue_id)
    return next(found, None)


def _are_same(documents: Mapping[str, IssueFile], known: Mapping[str, IssueFile]) -> bool:
    return documents.keys() == known.keys() and all(
        document is known[name] for name, document in documents.items()
    )
