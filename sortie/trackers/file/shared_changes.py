"""Changes of issues that are made together: in one thread, under one holding of the lock.

Rule 1: changes are made in the order in which they were asked for, each as if it were alone.
Rule 2: one that was begun is ended before whoever asked for it goes on, though cancelled; one that
was not is not begun any more.
"""

from __future__ import annotations

from collections.abc import Callable

import trio
from outcome import Outcome

from sortie.dataclass import dataclass
from sortie.model import Issue, TrackerError, TrackerErrorKind
from sortie.resources import run_in_thread
from sortie.trackers.file.disk import LockTaken
from sortie.trackers.file.entries import Change, IssueEntry, WantedChange
from sortie.trackers.file.issue_files import Changed, IssueFiles
from sortie.trackers.file.issue_index import IssueIndex
from sortie.trackers.file.reading import Reading

LOCK_PATIENCE = 10.0
"""Seconds that a change waits for another process to give up the lock."""

_LOCK_INTERVAL = 0.05


@dataclass(slots=True, eq=False)
class _Asked:
    """A change that was asked for, and what came of it."""

    wanted: WantedChange
    answer: Outcome[Changed] | None = None


class SharedChanges:
    """Makes changes in files; ``reading`` returns what is known of them now."""

    def __init__(self, files: IssueFiles, reading: Callable[[], Reading]) -> None:
        self._files = files
        self._reading = reading
        self._making = trio.Lock()
        self._asked: list[_Asked] = []

    async def make(
        self, issue: Issue, expected: str | None, change: Change
    ) -> tuple[IssueIndex, IssueEntry]:
        """Make a change; those who ask while others are being made have theirs made together."""
        asked = _Asked(WantedChange(issue_id=issue.id, expected=expected, change=change))
        self._asked.append(asked)
        try:
            async with self._making:
                if asked.answer is None:
                    await self._make_changes()
        finally:
            if asked.answer is None and asked not in self._asked:  # another task makes it now
                with trio.CancelScope(shield=True):
                    async with self._making:
                        pass
            if asked in self._asked:
                self._asked.remove(asked)
        if asked.answer is not None:
            reading, changed = asked.answer.unwrap()
            return reading.index, changed
        raise TrackerError(
            TrackerErrorKind.UNAVAILABLE,
            f"cannot change issue {issue.identifier}: another process has held the lock of its "
            f"directory for {LOCK_PATIENCE:g} s",
        )

    async def _make_changes(self) -> None:
        """Make all changes that are asked for; nothing is made where another has the lock."""
        with trio.move_on_after(LOCK_PATIENCE):
            while not await self._try_changes():
                await trio.sleep(_LOCK_INTERVAL)

    async def _try_changes(self) -> bool:
        together, self._asked = self._asked, []
        wanted = [asked.wanted for asked in together]
        try:
            made = await run_in_thread(self._files.change, self._reading(), wanted)
            for asked, answer in zip(together, made, strict=True):
                asked.answer = answer
        except LockTaken:
            return False
        finally:
            self._asked = [asked for asked in together if asked.answer is None] + self._asked
        return True
