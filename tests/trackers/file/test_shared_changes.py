"""Changes that are asked for at the same time."""

from __future__ import annotations

from pathlib import Path

import pytest
import trio

from sortie.model import IssueId, TrackerError, TrackerErrorKind
from sortie.trackers.file.disk import locked
from sortie.trackers.file.issue_files import IssueFiles
from sortie.trackers.file.tracker import FileTracker
from tests.trackers.file.folders import Memory, make, now, one, write

NAMES = [f"N-{number}" for number in range(8)]


class CountedFiles(IssueFiles):
    """Files that note how many changes were wanted in each call."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.together: list[int] = []

    def change(self, known, wanted):  # type: ignore[no-untyped-def]  # as it is there
        self.together.append(len(wanted))
        return super().change(known, wanted)


async def state(tracker: FileTracker, name: str) -> str:
    return (await one(tracker, name)).state


async def test_changes_asked_for_meanwhile_are_made_together(folder: Path, memory: Memory) -> None:
    """The first one is made alone; all that come until it is made take one call."""
    for name in NAMES:
        write(folder, f"{name}.md")
    files = CountedFiles(folder)
    tracker = FileTracker(files, memory, now)
    issues = (await tracker.fetch_by_ids([IssueId(name) for name in NAMES])).issues

    async with trio.open_nursery() as nursery:
        for issue in issues:
            nursery.start_soon(tracker.transition, issue, "Done")

    assert {await state(tracker, name) for name in NAMES} == {"Done"}
    assert sum(files.together) == len(NAMES)
    assert len(files.together) <= 2


async def test_one_that_fails_fails_alone(folder: Path, memory: Memory) -> None:
    """What is asked for beside it is made, whichever comes first."""
    for name in NAMES:
        write(folder, f"{name}.md")
    tracker = make(folder, memory)
    issues = (await tracker.fetch_by_ids([IssueId(name) for name in NAMES])).issues
    for name in NAMES[::3]:
        await tracker.transition(await one(tracker, name), "Elsewhere")
    refused: dict[str, TrackerErrorKind] = {}

    async def move(index: int) -> None:
        try:
            await tracker.transition(issues[index], "Done")
        except TrackerError as exc:
            refused[issues[index].identifier] = exc.kind

    async with trio.open_nursery() as nursery:
        for index in range(len(issues)):
            nursery.start_soon(move, index)

    assert refused == dict.fromkeys(NAMES[::3], TrackerErrorKind.CONFLICT)
    for name in NAMES:
        assert await state(tracker, name) == ("Elsewhere" if name in refused else "Done")


@pytest.mark.parametrize("cancelled", [0, 1, 2])
async def test_one_that_is_cancelled_before_it_is_begun_is_not_made(
    folder: Path, memory: Memory, cancelled: int
) -> None:
    """Whoever of several it is that waits for another process's lock; the others are made."""
    names = NAMES[:3]
    for name in names:
        write(folder, f"{name}.md")
    files = CountedFiles(folder)
    tracker = FileTracker(files, memory, now)
    issues = [await one(tracker, name) for name in names]
    scopes = [trio.CancelScope() for _ in names]
    ended = [trio.Event() for _ in names]

    async def move(index: int) -> None:
        with scopes[index]:
            await tracker.transition(issues[index], "Done")
        ended[index].set()

    async with trio.open_nursery() as nursery:
        with locked(folder):
            for index in range(len(names)):
                nursery.start_soon(move, index)
            while len(names) not in files.together:
                await trio.sleep(0.01)
            scopes[cancelled].cancel()
            await ended[cancelled].wait()

    assert [await state(tracker, name) for name in names] == [
        "Todo" if index == cancelled else "Done" for index in range(len(names))
    ]
