"""The tracker and the machine of its own, as one leader reaches them: each act needs the lease."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import trio

from sortie.http.under_lease import sending
from sortie.model import Issue, TransportError
from sortie.resources.lease import Lease, require_lease
from sortie.transports import Command
from tests.sim.leases.judge import Judge
from tests.sim.system.machine import Machine, Process
from tests.sim.system.plug import Plug
from tests.sim.system.tracker import SimTracker, Tracked
from tests.sim.system.transport import SimTransport


class LeasedTracker(SimTracker):
    """A tracker to which what was sent comes, whatever becomes of the daemon."""

    def __init__(
        self, tracked: Tracked, plug: Plug, nursery: trio.Nursery, lease: Lease, judge: Judge
    ) -> None:
        super().__init__(tracked, plug)
        self._nursery = nursery
        self._lease = lease
        self._judge = judge

    async def transition(self, issue: Issue, state: str) -> Issue:
        """See Tracker."""

        async def move() -> Issue:
            self._judge.acts(self._lease, f"moves {issue.identifier} to {state}")
            return await self._transition(issue, state)

        moved: Issue = await self._plug.through(lambda: self._send(move))
        self._tracked.heard(issue, state)
        return moved

    async def comment(
        self, issue: Issue, body: str, key: str | None = None, *, again: bool = False
    ) -> None:
        """See Tracker."""

        async def remark() -> None:
            self._judge.acts(self._lease, f"comments on {issue.identifier}")
            await self._comment(issue, body, key, again=again)

        await self._plug.through(lambda: self._send(remark))

    async def _send(self, request: Callable[[], Awaitable[Any]]) -> Any:
        """Send a request that changes something, and wait for the answer."""
        require_lease()
        over, answers, errors = trio.Event(), list[Any](), list[Exception]()

        async def deliver() -> None:
            try:
                answers.append(await self._through_the_line(request))
            except Exception as error:  # the edge: the one who asked gets it
                errors.append(error)
            over.set()

        self._nursery.start_soon(deliver)
        with sending("cannot change the tracker", is_change=True):
            await over.wait()
        for error in errors:
            raise error
        return answers[0]


class OwnMachine(SimTransport):
    """The machine on which the daemon runs: what it starts ends with it."""

    def __init__(self, machine: Machine, plug: Plug, lease: Lease, judge: Judge) -> None:
        super().__init__(machine, plug)
        self._lease = lease
        self._judge = judge

    async def _launch(self, command: Command) -> Process:
        files = self.machine.files
        await trio.lowlevel.checkpoint()
        if not await files.contained("/", command.cwd):
            raise TransportError(f"could not start {command.argv[0]}: no directory {command.cwd}")
        require_lease()
        self._judge.acts(self._lease, f"starts {command.argv[0]}")
        return self.machine.launch(command)
