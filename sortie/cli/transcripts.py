"""Find the transcript of an issue's run and read it, also while it grows.

Rule 1: nothing is asked of a daemon: what it has written is read, as it stands.
Rule 2: following ends, whatever becomes of the run and the daemon.
Rule 3: of the history the one run is read, however many there are.
"""

from __future__ import annotations

import time
from collections.abc import Generator, Iterator
from datetime import UTC, datetime

from msgspec import Struct, field

from sortie.cli.format import utc
from sortie.daemon.locks import database_lock_path, holder_of
from sortie.model import RunId, RunStatus, SortieError
from sortie.store import HistoryRow
from sortie.store.readonly import Place, is_there, read_newest, read_one
from sortie.telemetry.transcripts import (
    TranscriptLine,
    TranscriptPage,
    directory_of,
    read_page,
)

INTERVAL = 0.5
"""Seconds from one look for new lines to the next."""

LATE = 15.0
"""Seconds by which the end of a transcript may come later than its run's end is recorded."""

_LINES = 1000  # of a page


def find(db_path: str, database: Place, issue: str, run: str | None) -> RunTranscript:
    """Return the transcript of a run of an issue, of the newest where none is named; it lies beside
    ``db_path``, and the rows are in ``database``.

    Raises SortieError where there is no such run.
    """
    if not is_there(database):
        raise SortieError(f"there is no database {db_path} yet: no daemon has run here")
    row = read_newest(database, issue) if run is None else read_one(database, RunId(run))
    if row is None or issue not in (row.issue, row.issue_id):
        what = f"no run of {issue} is recorded" if run is None else f"{issue} has no run {run}"
        raise SortieError(f"{what}; 'sortie history --format json' shows all there are")
    return RunTranscript(db_path, database, row)


class RunTranscript(Struct):
    """The transcript of one run; ``notes`` are what is to be said of it when all is shown."""

    db_path: str
    database: Place
    row: HistoryRow
    notes: list[str] = field(default_factory=list)
    _after: int = 0

    @property
    def run_id(self) -> RunId:
        """The run that it is of."""
        return self.row.run_id

    def lines(self) -> Iterator[TranscriptLine]:
        """Return all lines that there are. Raises SortieError where there is no transcript."""
        page = yield from self._rest()
        if (page is None or not page.ended) and self._may_grow():
            self.notes.append("the run is under way; --follow goes on until it is over")
        elif page is None:
            raise SortieError(
                f"there is no transcript of run {self.run_id}, which began"
                f" {utc(self.row.started_at)}: it was forgotten, as history.keep_days and"
                " history.max_bytes have it, or never written"
            )
        elif page.damage is not None:
            self.notes.append(page.damage)
        elif not page.ended:
            self.notes.append("the end is missing: the daemon ended before the run did")

    def followed(self) -> Iterator[TranscriptLine]:
        """Return the lines that there are, and those that come until the run is over."""
        while self._may_grow():
            page = yield from self._rest()
            if page is not None and page.ended:
                return
            time.sleep(INTERVAL)
        yield from self.lines()

    def _rest(self) -> Generator[TranscriptLine, None, TranscriptPage | None]:
        """Return the lines that have come, and in the end the last page, None without any."""
        directory, page = directory_of(self.db_path), None
        while page is None or page.more:
            try:
                page = read_page(directory, self.run_id, self._after, _LINES)
            except FileNotFoundError:
                return None
            except OSError as error:
                raise SortieError(
                    f"cannot read the transcript of run {self.run_id} in {directory}:"
                    f" {error.strerror}"
                ) from error
            for line in page.lines:
                self._after = line.number
                yield line
        return page

    def _may_grow(self) -> bool:
        """Tell whether a daemon lives that may write more."""
        if holder_of(database_lock_path(self.db_path)) is None:
            return False
        now = read_one(self.database, self.run_id)
        if now is None:
            return False
        if now.status is RunStatus.RUNNING or now.finished_at is None:
            return True
        return (datetime.now(UTC) - now.finished_at).total_seconds() < LATE
