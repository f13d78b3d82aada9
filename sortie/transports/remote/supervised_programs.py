"""The supervised programs of one host: how they begin, and the end of those whose run is over."""

from __future__ import annotations

from collections.abc import Collection
from contextlib import AsyncExitStack

import trio

from sortie.model import RunId
from sortie.transports.lost_links import Links
from sortie.transports.remote.adopted_process import AdoptedProcess
from sortie.transports.remote.fence import LeaderFence
from sortie.transports.remote.forced_end import FINISH_BOUND
from sortie.transports.remote.remote_launch import RemoteLaunch
from sortie.transports.remote.shell import Shell, ShellQuestion
from sortie.transports.remote.supervised_process import SupervisedProcess
from sortie.transports.remote.supervision import Supervision
from sortie.transports.remote.supervisor_scripts import (
    SupervisedLaunch,
    adoptable_body,
    ending_body,
)


class SupervisedPrograms:
    """Begins and ends them; they live for ``reattach`` seconds without a link, none where it is 0,
    and keep ``kept`` bytes of each stream meanwhile."""

    def __init__(
        self, shell: Shell, hurry: trio.Event, links: Links, reattach: float, kept: int
    ) -> None:
        self.wanted = reattach > 0
        self._shell = shell
        self._hurry = hurry
        self._links = links
        self._reattach = reattach
        self._kept = kept
        self._under_way: set[str] = set()

    async def begin(
        self, launch: RemoteLaunch, attempt: str, stack: AsyncExitStack
    ) -> SupervisedProcess:
        """Begin the script of a launch; it ends with the stack. Raises HostError."""
        supervised = SupervisedLaunch(launch=launch, reattach=self._reattach, kept=self._kept)
        supervision = Supervision(supervised)
        self._under_way.add(supervised.id)
        stack.callback(self._under_way.discard, supervised.id)
        parser, lent = supervision.parser(), None
        if self._shell.lends:
            opening = supervision.opening(whole=True)
            lent = await self._shell.lend(attempt, launch.nonce, opening, parser)
            stack.callback(lent.close)
            script = lent.script
        else:
            opening = supervision.opening()
            script = await self._shell.begin(attempt, launch.nonce, opening, parser=parser)
            stack.callback(script.channel.abort)
        return SupervisedProcess(
            self._shell, supervision, script, self._hurry, stack, self._links, lent
        )

    async def adopt(self, launch: RemoteLaunch, stack: AsyncExitStack) -> AdoptedProcess:
        """Begin to go on with a program that another daemon has launched so; the link to it ends
        with the stack. Raises HostError."""
        supervised = SupervisedLaunch(launch=launch, reattach=self._reattach, kept=self._kept)
        supervision, nonce = Supervision(supervised), self._links.new_nonce()
        self._under_way.add(supervised.id)
        stack.callback(self._under_way.discard, supervised.id)
        attempt, text = "go on with a program", supervision.adopting(nonce)
        script = await self._shell.begin(attempt, nonce, text, parser=supervision.parser())
        stack.callback(script.channel.abort)
        return AdoptedProcess(self._shell, supervision, script, self._hurry, stack, self._links)

    async def adoptable(self, ids: Collection[str], fence: LeaderFence | None) -> Collection[str]:
        """Return which of these supervisors have a program that another daemon can go on with.

        Raises HostError.
        """
        attempt = "look for programs that go on"
        question = ShellQuestion(attempt=attempt, body=adoptable_body(ids), fence=fence)
        return (await self._shell.ask(question)).said.split()

    async def end(self, run_ids: Collection[RunId], fence: LeaderFence | None) -> None:
        """End what kept the streams of runs that are over, whoever began it, and remove its files.

        Raises HostError.
        """
        body = ending_body(run_ids, self._under_way)
        attempt = "end supervisors"
        await self._shell.ask(
            ShellQuestion(attempt=attempt, body=body, bound=FINISH_BOUND, fence=fence)
        )
