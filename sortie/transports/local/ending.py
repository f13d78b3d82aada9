"""Ends processes for certain: SIGTERM, grace, SIGKILL, then looks until none is left.

Rule 1: a process gets SIGTERM at most once, and what its handler starts gets none while the
first process lives, so that an orderly shutdown is not disturbed.
Rule 2: every wait has an end; what is alive then is named in a ProcessesLeft and given up.
Rule 3: a signal goes to the process that was seen, never to a later one with its pid.
Rule 4: nobody is given up who could not be signalled for a shortage.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Awaitable, Callable, Iterable
from contextlib import suppress

import psutil
import trio

from sortie.model import ProcessesLeft
from sortie.resources import Shortage, note, shortage_behind
from sortie.resources.descriptors import released_reserve
from sortie.transports.local.process_table import ProcessTable, Seen
from sortie.transports.local.process_tree import Members
from sortie.transports.local.root import Root

KILL_BOUND = 5.0
"""Seconds after SIGKILL in which a process has to be gone."""
HURRIED_KILL_BOUND = 1.0

_FIRST_PAUSE, _LONGEST_PAUSE = 0.005, 0.1

Look = Callable[[], Awaitable[ProcessTable]]
Find = Callable[[ProcessTable], Members]
GiveUp = Callable[[Seen], None]


class Ending:
    """Ends the processes that ``find`` points out in a census, again and again if need be.

    ``give_up`` is told of those that ``find`` shall not point out again. ``ended`` holds who was
    signalled, ``killed`` who got SIGKILL.
    """

    def __init__(
        self, *, give_up: GiveUp, hurry: trio.Event, find: Find, root: Root | None = None
    ) -> None:
        self._give_up = give_up
        self._hurry = hurry
        self._find = find
        self._root = root
        self._deadline: float | None = None
        self._refused = False  # a shortage kept a signal from being sent
        self.ended: set[psutil.Process] = set()
        self.killed: set[psutil.Process] = set()

    async def end(self, grace: float, *looks: Look) -> bool:
        """End what the first look shows, watching with the last; return whether it was any.

        The grace time counts from the first call that found somebody. Raises ProcessesLeft
        naming the pids that stay. May be called again after it was cancelled.
        """
        members = self._find(await looks[0]())
        if not members.alive and not members.undecided:
            return False
        if self._deadline is None:
            self._deadline = trio.current_time() + grace
        self._terminate(members)
        members = await self._wait(members, self._deadline, looks[-1])
        if members.alive:
            await self._kill(members, looks[-1])
        return True

    async def _wait(self, members: Members, deadline: float, look: Look) -> Members:
        """Wait until all are gone, the grace time is over, or there is no time for grace."""
        pause = _FIRST_PAUSE
        root_lives = self._root is not None and self._root.pid in members.alive
        while members.alive or members.undecided:
            left = deadline - trio.current_time()
            if left <= 0 or self._hurry.is_set():
                break
            with trio.move_on_after(min(pause, left)):
                await self._hurry.wait()
            pause = min(pause * 2, _LONGEST_PAUSE)
            members = self._find(await look())
            if root_lives and self._root is not None and self._root.pid not in members.alive:
                root_lives = False
                self._terminate(members)
        return members

    async def _kill(self, members: Members, look: Look) -> None:
        bound = HURRIED_KILL_BOUND if self._hurry.is_set() else KILL_BOUND
        deadline = trio.current_time() + bound
        pause = _FIRST_PAUSE
        while members.alive:
            # The group in one stroke, which what forks as fast as it can does not escape.
            group = self._group()
            if group is not None:
                _send_to_group(group, signal.SIGKILL)
            self._signal(members.alive.values(), signal.SIGKILL)
            if self._refused:  # the bound is for those who got the signal
                deadline = trio.current_time() + bound
            elif trio.current_time() >= deadline:
                raise self._left_over(members)
            await trio.sleep(pause)
            pause = min(pause * 2, _LONGEST_PAUSE)
            members = self._find(await look())

    def _terminate(self, members: Members) -> None:
        fresh = [seen for seen in members.alive.values() if seen.handle not in self.ended]
        # Elders first: a shell that waits for its child would exit as if all were well.
        fresh.sort(key=_age)
        group = self._group()
        if group is not None and group in members.alive:
            _send_to_group(group, signal.SIGTERM)
            self._signal((seen for seen in fresh if seen.pgid != group), signal.SIGTERM)
            self.ended.update(seen.handle for seen in fresh)
        else:
            self._signal(fresh, signal.SIGTERM)
        # A stopped process takes the polite signal only when it is continued.
        self._signal((seen for seen in fresh if seen.stopped), signal.SIGCONT)

    def _group(self) -> int | None:
        return self._root.pid if self._root is not None and self._root.pinned else None

    def _signal(self, members: Iterable[Seen], signum: signal.Signals) -> None:
        self._refused = False
        for seen in members:
            try:
                if not send(seen, signum):
                    continue
            except Shortage as exc:
                self._refused = True
                note(exc)
                continue
            except PermissionError:
                # It runs as another user, which nothing here can end.
                self._give_up(seen)
                continue
            self.ended.add(seen.handle)
            if signum == signal.SIGKILL:
                self.killed.add(seen.handle)

    def _left_over(self, members: Members) -> ProcessesLeft:
        for seen in members.alive.values():
            self._give_up(seen)
        pids = ", ".join(str(pid) for pid in sorted(members.alive))
        return ProcessesLeft(
            f"these processes are still there after SIGKILL: {pids};"
            " look at them with ps (a state of D waits for a device or a network file system)",
            pids=frozenset(members.alive),
        )


def send(seen: Seen, signum: signal.Signals) -> bool:
    """Signal a process, and never a later one with its pid; return whether it was there.

    Raises PermissionError, and Shortage where nobody could be signalled for want of something.
    """
    try:
        return _send(seen, signum)
    except OSError as exc:
        if shortage_behind(exc) is None:
            raise
    try:
        with released_reserve():
            return _send(seen, signum)
    except OSError as exc:
        shortage = shortage_behind(exc)
        if shortage is None:
            raise
        raise shortage from exc


def _send(seen: Seen, signum: signal.Signals) -> bool:
    with suppress(ProcessLookupError, psutil.NoSuchProcess):
        try:
            pidfd = os.pidfd_open(seen.pid)
        except (AttributeError, OSError) as exc:
            if shortage_behind(exc) is not None:
                raise
            _send_by_pid(seen, signum)
            return True
        try:
            # The descriptor is opened first: who has the pid now cannot lose it unnoticed.
            if psutil.Process(seen.pid) == seen.handle:
                signal.pidfd_send_signal(pidfd, signum)
                return True
        finally:
            os.close(pidfd)
    return False


def _send_to_group(group: int, signum: signal.Signals) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(group, signum)


def _send_by_pid(seen: Seen, signum: signal.Signals) -> None:
    try:
        seen.handle.send_signal(signum)
    except psutil.AccessDenied as exc:
        raise PermissionError(str(exc)) from exc


def _age(seen: Seen) -> tuple[float, int]:
    """Return what orders processes from the oldest on."""
    began = 0.0 if seen.identity is None else seen.identity.started_at
    return (began, seen.pid)
