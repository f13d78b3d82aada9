"""The checks of agents' adapters; each also fails where it leaves a process."""

from __future__ import annotations

from collections.abc import Collection

import psutil
import trio

from sortie.model import TransportError
from sortie.testing.agent.subject import Subject
from sortie.testing.checks import Checks, ConformanceCheck, NotKept, Status


def own_children() -> set[psutil.Process]:
    """Return the children of this process that run."""
    return {child for child in psutil.Process().children() if _runs(child)}


def require_no_more_children(before: Collection[psutil.Process]) -> None:
    """End the children that were not there before. Raises NotKept where there are any."""
    more = own_children() - set(before)
    names = sorted(_name(child) for child in more)
    for child in more:
        child.kill()
    psutil.wait_procs(more, timeout=5)
    if more:
        raise NotKept(
            f"{len(more)} processes were started beside the transport and left: {', '.join(names)}"
        )


def _runs(process: psutil.Process) -> bool:
    try:
        return process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def _name(process: psutil.Process) -> str:
    try:
        return process.name()
    except psutil.NoSuchProcess:
        return "ended meanwhile"


_SWEEP_INTERVAL = 2.0


class AgentCheck(ConformanceCheck[Subject], frozen=True):
    """A check of an agent's adapter."""

    async def outcome(self, subject: Subject, time_limit: float) -> tuple[Status, str]:
        """Make the check, and fail it where a process is left.

        The processes of an adapter that ignores its cancellation are ended, so that it returns.
        """
        before = own_children()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(_end_processes_after, subject, time_limit + subject.stop_bound)
            status, reason = await ConformanceCheck.outcome(self, subject, time_limit)
            nursery.cancel_scope.cancel()
        try:
            with trio.fail_after(time_limit):
                await subject.require_no_process_left("after the session")
            require_no_more_children(before)
        except (NotKept, TransportError, trio.TooSlowError) as error:
            if status is not Status.FAILED:
                status, reason = Status.FAILED, str(error) or "processes could not be looked for"
        return status, reason


async def _end_processes_after(subject: Subject, seconds: float) -> None:
    await trio.sleep(seconds)
    while True:
        await subject.transport.sweep([subject.run_id], grace=0)
        await trio.sleep(_SWEEP_INTERVAL)


CHECKS: Checks[Subject] = Checks(AgentCheck)
"""All checks of agents."""

check = CHECKS.check
