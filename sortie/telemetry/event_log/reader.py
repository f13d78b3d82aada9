"""Find recorded moments, beside a daemon that writes or without one; everything here blocks."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime

from msgspec import DecodeError, Struct

from sortie.model import SortieError
from sortie.model.times import rfc3339
from sortie.telemetry.event_log.entries import (
    Incident,
    SegmentHeader,
    decoded_entries,
    decoded_header,
    decoded_time,
)
from sortie.telemetry.event_log.replay import Replay
from sortie.telemetry.event_log.segments import OURS, began_at, frames
from sortie.telemetry.private_directory import StoredFile, opened, words_of

_SLACK = 1.0  # seconds after an event in which nothing else counts as having happened
_LATENESS = 60.0  # seconds by which a daemon that is at work may be late


class EventLogError(SortieError):
    """The event log does not tell what was asked for."""


class Recorded(Struct, frozen=True, kw_only=True):
    """A time without a gap that segments cover, in Unix seconds."""

    begin: float
    end: float


class Past(Struct, kw_only=True):
    """The scheduler as it was at a moment; ``offset`` added to its times gives Unix seconds.

    ``at`` is the moment, ``last_event_at`` when the event before it came, in Unix seconds.
    """

    replay: Replay
    at: float
    last_event_at: float
    offset: float

    @property
    def now(self) -> float:
        """The moment in the scheduler's time."""
        return self.at - self.offset


class Segment(Struct, frozen=True, kw_only=True):
    """A segment in a directory, whose header was read."""

    path: str
    file: StoredFile
    header: SegmentHeader
    payloads: Iterator[bytes]

    def incidents(self) -> Iterator[Incident]:
        """Go through all that happened, once. Raises EventLogError."""
        try:
            yield from decoded_entries(self.payloads)
        except (DecodeError, LookupError) as error:
            raise _unreadable(self.path, self.file, error) from error

    def last_event_at(self) -> float:
        """Return when the last event came, in Unix seconds, instead of going through all."""
        last = self.header.now
        for payload in self.payloads:
            last = decoded_time(payload)
        return last + self.offset

    @property
    def offset(self) -> float:
        """What is added to the scheduler's times for Unix seconds."""
        return self.header.at - self.header.now


def stored_segments(path: str) -> Sequence[StoredFile]:
    """Return the files of segments, the oldest first. Raises EventLogError."""
    try:
        with opened(path) as directory:
            return sorted(directory.stored(OURS), key=lambda each: each.name)
    except FileNotFoundError:
        return ()
    except OSError as error:
        raise EventLogError(f"cannot read the event log in {path}: {words_of(error)}") from error


def read_segment(path: str, file: StoredFile) -> Segment:
    """Read the header of a segment. Raises EventLogError."""
    payloads = _payloads(path, file)
    try:
        first = next(payloads, None)
        if first is None:
            raise ValueError("it holds nothing")
        header = decoded_header(first)
    except ValueError as error:
        raise _unreadable(path, file, error) from error
    return Segment(path=path, file=file, header=header, payloads=payloads)


def _payloads(path: str, file: StoredFile) -> Iterator[bytes]:
    try:
        with opened(path) as directory:
            fd = directory.read(file.name)
        yield from frames(fd)
    except (OSError, ValueError) as error:
        raise _unreadable(path, file, error) from error


def _unreadable(path: str, file: StoredFile, error: Exception) -> EventLogError:
    why = words_of(error) if isinstance(error, OSError) else str(error)
    return EventLogError(f"cannot read {os.path.join(path, file.name)} of the event log: {why}")


def past_at(path: str, at: float, *, alive: bool) -> Past:
    """Return the scheduler as it was at a Unix time; ``alive``: a daemon writes now.

    Raises EventLogError, also where nothing is recorded for that time.
    """
    files = stored_segments(path)
    begun = [file for file in files if began_at(file.name) <= at + 0.001]
    if not begun:
        raise _not_recorded(path, files, at)
    segment = read_segment(path, begun[-1])
    offset = segment.offset
    replay, is_over = _replayed(segment, at - offset)
    if is_over and replay.now + offset < at - _SLACK:
        following = files[files.index(begun[-1]) + 1 :]
        if following:
            is_known = read_segment(path, following[0]).header.follows
        else:  # it would have been told of the time at the latest then
            is_known = alive and at - offset < replay.scheduler.wakeup_at() + _LATENESS
        if not is_known:
            raise _not_recorded(path, files, at)
    return Past(replay=replay, at=at, last_event_at=replay.now + offset, offset=offset)


def _replayed(segment: Segment, until: float) -> tuple[Replay, bool]:
    """Replay a segment up to a time of the scheduler; tell whether that was all of it.

    Raises EventLogError, also where this version cannot replay what another has recorded.
    """
    try:
        replay = Replay(segment.header)
        for incident in segment.incidents():
            if incident.now > until:
                return replay, False
            replay.tell(incident)
    except EventLogError:
        raise
    except Exception as error:  # the edge: another version's state may mislead this one anywhere
        raise EventLogError(
            f"cannot decide over again what Sortie {segment.header.version} was told in"
            f" {os.path.join(segment.path, segment.file.name)}: {error or type(error).__name__}"
        ) from error
    return replay, True


def _not_recorded(path: str, files: Sequence[StoredFile], at: float) -> EventLogError:
    when = _time(at)
    if not files:
        return EventLogError(
            f"nothing is recorded for {when}: there is no event log in {path}; a daemon keeps one"
            " while journal.keep_days is more than 0"
        )
    covered = ", ".join(f"{_time(each.begin)} to {_time(each.end)}" for each in coverage(path))
    return EventLogError(f"nothing is recorded for {when}; the event log covers {covered}")


def coverage(path: str) -> Sequence[Recorded]:
    """Return which times are recorded, the oldest first. Raises EventLogError."""
    found: list[Recorded] = []
    for file in stored_segments(path):
        try:
            segment = read_segment(path, file)
            begin, end = segment.header.at, segment.last_event_at()
        except EventLogError:
            continue
        if segment.header.follows and found:
            found[-1] = Recorded(begin=found[-1].begin, end=end)
        else:
            found.append(Recorded(begin=begin, end=end))
    return found


def _time(at: float) -> str:
    return rfc3339(datetime.fromtimestamp(at, UTC), "seconds")
