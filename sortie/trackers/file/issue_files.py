"""The files of issues: looked at, and changed, by plain blocking calls that run in a thread."""

from __future__ import annotations

import os
import stat
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from hashlib import sha256
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from sortie.model import IssueId, TrackerError, TrackerErrorKind, same_state
from sortie.resources import shortage_behind
from sortie.trackers.file import disk
from sortie.trackers.file.entries import (
    Change,
    IssueEntry,
    IssueFile,
    MalformedEntry,
    SetState,
)
from sortie.trackers.file.fields import one_line
from sortie.trackers.file.issue_index import FilesRead
from sortie.trackers.file.json_list import IssueList
from sortie.trackers.file.markdown import Markdown, is_issue_name, stem_of

CHANGE_TRIES = 3
"""How often a change is tried where others change the file at the same time."""

_DISTINCT_AFTER = 2_000_000_000
"""Nanoseconds after which a change of a file is sure to change its times, on any file system."""


class _Place(Struct, frozen=True, kw_only=True):
    """Where the issues are now; ``only`` is the whole path of the file that holds a list."""

    folder: Path
    file_format: Markdown | IssueList
    only: str | None = None


class IssueFiles:
    """A directory of Markdown issues, or one JSON file: whichever the path is at the time.

    A call takes the last reading and returns the next one, so that calls may be made from several
    threads at once.
    """

    def __init__(self, path: Path, calls: disk.Syscalls | None = None) -> None:
        self._path = path
        self._calls = calls or disk.Syscalls()
        self._markdown, self._list = Markdown(), IssueList()
        self._has_leftovers = True  # as far as is known

    @property
    def path(self) -> Path:
        """The directory or the file, as it was given."""
        return self._path

    def folder(self) -> Path:
        """Return the directory in which files are changed. Raises TrackerError."""
        with self._translated("find"):
            return self._place().folder

    def look(self, known: FilesRead, at: float) -> FilesRead:
        """Look at all files and read what changed; ``at`` is Unix seconds. Raises TrackerError."""
        with self._translated("read issues from"):
            place = self._place()
            if place.only is None:
                suspects, gone = self._suspects(place.folder, known.documents)
            else:
                suspects, gone = [place.only], known.documents.keys() - {place.only}
            changes = self._changes(place, known, suspects, at)
        return known.changed({**dict.fromkeys(gone), **changes})

    def reread(self, known: FilesRead, ids: Collection[IssueId], at: float) -> FilesRead:
        """Look at the files of these issues, and at those of what blocks them.

        That is all files where one of these is not known, or has left its file. Another file that
        has begun to claim the name of one of them is found by ``look``. Raises TrackerError.
        """
        with self._translated("read issues from"):
            place = self._place()
            looked_at: set[str] = set()
            while place.only is None:
                names = known.index.files_of(ids)
                if names is None:
                    break
                names -= looked_at
                if not names:
                    return known
                looked_at |= names
                known = known.changed(self._changes(place, known, names, at))
        return self.look(known, at)

    def change(
        self, known: FilesRead, issue_id: IssueId, expected: str | None, change: Change
    ) -> tuple[FilesRead, IssueEntry]:
        """Make a change durable; return the changed issue and what was read around it.

        With ``expected`` the issue must be in that state. Raises TrackerError, and LockTaken where
        another process changes issues.
        """
        with self._translated("change an issue in"):
            folder = self._place().folder
            with disk.locked(folder):
                if self._has_leftovers:
                    self._has_leftovers = False
                    disk.remove_leftovers(folder)
                for _ in range(CHANGE_TRIES):
                    known = self.reread(known, {issue_id}, 0.0)
                    changed = self._try(known, issue_id, expected, change)
                    if changed is not None:
                        return known, changed
        raise TrackerError(
            TrackerErrorKind.UNAVAILABLE,
            f"issue {issue_id!r} was changed by others {CHANGE_TRIES} times meanwhile",
        )

    def _try(
        self, reading: FilesRead, issue_id: IssueId, expected: str | None, change: Change
    ) -> IssueEntry | None:
        """Make a change once; None where the file is no longer what was read."""
        present = reading.index.require(issue_id, str(self._path))
        place = self._place()
        name = reading.index.files[issue_id]
        path, limit = place.folder / name, place.file_format.limit
        try:
            raw, _ = disk.read(path, limit)
        except (FileNotFoundError, disk.NotAFile):
            return None
        except OSError as exc:
            raise disk.translated(exc, f"cannot change issue {issue_id!r}") from exc
        if reading.documents[name].digest != _digest(raw):
            return None
        if expected is not None and not same_state(present.issue.state, expected):
            raise TrackerError(
                TrackerErrorKind.CONFLICT,
                f"{present.where}: issue {present.issue.identifier} is in state "
                f"{present.issue.state!r}, no longer in {expected!r}",
            )
        if isinstance(change, SetState) and change.state == present.issue.state:
            return present
        new, made = place.file_format.rewrite(path.name, raw, present.issue, change)
        if len(new) > limit:
            raise TrackerError(
                TrackerErrorKind.INVALID,
                f"{present.where}: would become larger than {limit} bytes",
            )
        return made if disk.replace_if_same(path, raw, new, self._calls) else None

    def _place(self) -> _Place:
        status = os.stat(self._path)
        if stat.S_ISDIR(status.st_mode):
            return _Place(folder=self._path, file_format=self._markdown)
        if stat.S_ISREG(status.st_mode):
            real = self._path.resolve()
            return _Place(folder=real.parent, file_format=self._list, only=str(real))
        raise TrackerError(
            TrackerErrorKind.UNAVAILABLE, f"{self._path}: neither a directory nor a file"
        )

    def _suspects(
        self, folder: Path, known: Mapping[str, IssueFile]
    ) -> tuple[list[str], Collection[str]]:
        """Return the files of a directory that may have changed, and those known that are gone.

        Where no file changes this is nearly all that a look costs, so the loop is a bare one.
        """
        unchanged: list[str] = []
        suspects: list[str] = []
        fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            for name in os.listdir(fd):
                old = known.get(name)
                if old is None and not is_issue_name(name):
                    self._has_leftovers |= disk.is_leftover(name)
                    continue
                try:
                    status = os.stat(name, dir_fd=fd, follow_symlinks=False)
                except OSError as exc:
                    if shortage_behind(exc) is not None:
                        raise
                    suspects.append(name)
                    continue
                if old is not None and old.stamp == disk.stamp(status):
                    unchanged.append(name)
                elif not stat.S_ISDIR(status.st_mode):
                    suspects.append(name)
        finally:
            os.close(fd)
        if len(unchanged) == len(known):
            return suspects, ()
        return suspects, known.keys() - set(unchanged) - set(suspects)

    def _changes(
        self, place: _Place, known: FilesRead, names: Iterable[str], at: float
    ) -> dict[str, IssueFile | None]:
        """Read those files that have changed; None is one that is gone."""
        changes: dict[str, IssueFile | None] = {}
        for name in names:
            old = known.documents.get(name)
            path = f"{place.folder}/{name}" if place.only is None else name
            with suppress(OSError):  # reading the file says what is wrong
                if old is not None and old.stamp == disk.stamp(os.lstat(path)):
                    continue
            document = self._document(place, name, old, at)
            if document is not old:
                changes[name] = document
        return changes

    def _document(
        self, place: _Place, name: str, old: IssueFile | None, at: float
    ) -> IssueFile | None:
        """Read a file, None where it is gone; one that changed just before ``at`` is read again."""
        path, known = place.folder / name, old.known_id() if old else None
        try:
            raw, status = disk.read(path, place.file_format.limit)
        except FileNotFoundError:
            return None
        except (OSError, disk.NotAFile) as exc:
            if shortage_behind(exc) is not None:
                raise  # nothing is wrong with this file
            unreadable = _unreadable(path, place.file_format, exc, known)
            return old if old == unreadable else unreadable
        digest = _digest(raw)
        changed = max(status.st_mtime_ns, status.st_ctime_ns)
        stamp = disk.stamp(status) if changed < at * 1e9 - _DISTINCT_AFTER else None
        file = (status.st_dev, status.st_ino)
        if old is not None and old.digest == digest:
            same = old.stamp == stamp and old.file == file
            return old if same else replace(old, stamp=stamp, file=file)
        entries = place.file_format.read(path.name, raw, known)
        return IssueFile(name=name, stamp=stamp, digest=digest, entries=entries, file=file)

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


def _unreadable(
    path: Path, file_format: Markdown | IssueList, exc: Exception, known: IssueId | None
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


def _digest(raw: bytes) -> str:
    return sha256(raw).hexdigest()
