"""The supervised programs of one host: how they begin, and the end of those whose run is over."""

from __future__ import annotations

from collections.abc import Collection
from contextlib import AsyncExitStack

import trio

from sortie.model import RunId
from sortie.transports.remote.forced_end import FINISH_BOUND
from sortie.transports.remote.launch_scripts import RemoteLaunch
from sortie.transports.remote.shell import Shell, ShellQuestion
from sortie.transports.remote.supervised_process import Links, SupervisedProcess
from sortie.transports.remote.supervision import Supervision
from sortie.transports.remote.supervisor_scripts import SupervisedLaunch, ending_body


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

    async def end(self, run_ids: Collection[RunId]) -> None:
        """End what kept the streams of runs that are over, whoever began it, and remove its files.

        Raises HostError.
        """
        body = ending_body(run_ids, self._under_way)
        await self._shell.ask(
            ShellQuestion(attempt="end supervisors", body=body, bound=FINISH_BOUND)
        )
