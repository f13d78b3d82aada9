"""Waits for the pipes of all programs at once, and wakes those who read them.

To be woken costs this process more than to read what it was woken for. Where hundreds of agents
talk it would be woken a thousand times a second; so it is two hundred times at the most.

Rule 1: after several readers were woken at once, the next ones are woken ``PAUSE`` seconds later;
whoever is alone with what comes is woken at once.
Rule 2: a pipe is looked at as long as somebody waits for it; who comes back finds it again.
"""

from __future__ import annotations

import selectors
from collections.abc import Callable, Mapping, Sequence

import trio

PAUSE = 0.005
"""Seconds for which output may lie in its pipe: less than anybody notices who reads it."""


class PipeReader:
    """One who reads some pipes, descriptors by their numbers."""

    __slots__ = ("found", "pipes", "task", "unwatched")

    def __init__(self, pipes: Mapping[int, int]) -> None:
        self.pipes = pipes
        self.unwatched = [*pipes]
        self.found: list[int] = []
        self.task: trio.lowlevel.Task | None = None

    def wake(self) -> None:
        """Have the task go on that waits, if there is one."""
        task, self.task = self.task, None
        if task is not None:
            trio.lowlevel.reschedule(task)

    def leave(self, _: Callable[[], object]) -> trio.lowlevel.Abort:
        """Wait no more, as the task is cancelled."""
        self.task = None
        return trio.lowlevel.Abort.SUCCEEDED


class PipePoller:
    """See the module. Its task runs from the first wait on, as long as trio does; its descriptor
    goes with it."""

    def __init__(self) -> None:
        self._selector = selectors.DefaultSelector()
        self._runs = False

    async def readable(self, reader: PipeReader) -> Sequence[int]:
        """Wait until there is something to read, and return the numbers of the pipes that have it.

        There may be none, where the reader was woken by somebody else. Raises OSError.
        """
        while reader.unwatched:
            number = reader.unwatched[-1]
            self._selector.register(reader.pipes[number], selectors.EVENT_READ, (reader, number))
            reader.unwatched.pop()
        if not self._runs:
            self._runs = True
            trio.lowlevel.spawn_system_task(self._run)
        reader.found, reader.task = [], trio.lowlevel.current_task()
        await trio.lowlevel.wait_task_rescheduled(reader.leave)
        return reader.found

    def forget(self, reader: PipeReader, number: int) -> None:
        """Look at a pipe no more, which has ended or is to be closed."""
        if number in reader.unwatched:
            reader.unwatched.remove(number)
        else:
            self._selector.unregister(reader.pipes[number])

    async def _run(self) -> None:
        try:
            while True:
                if self._look() > 1:
                    await trio.sleep(PAUSE)
                    continue
                for _ in range(2):  # by then the one that was woken has read
                    await trio.lowlevel.checkpoint()
                await trio.lowlevel.wait_readable(self._selector.fileno())
        finally:
            self._runs = False

    def _look(self) -> int:
        """Wake all who have something to read, and return how many they are."""
        woken = set()
        for key, _ in self._selector.select(0):
            reader, number = key.data
            if reader.task is not None:
                reader.wake()
                woken.add(reader)
            if reader in woken:
                reader.found.append(number)
            else:
                self._selector.unregister(key.fd)
                reader.unwatched.append(number)
        return len(woken)
