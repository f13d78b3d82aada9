"""A program on a host that another daemon has started, and that is gone on with here."""

from __future__ import annotations

import trio

from sortie.model import TransportError
from sortie.transports.remote.fence import LOST, UNLED, refused_leader
from sortie.transports.remote.launch import Bounds, slow_shell
from sortie.transports.remote.supervised_process import SupervisedProcess


class AdoptedProcess(SupervisedProcess):
    """See SupervisedProcess; it is entered by ``go_on``, and all of its output comes again."""

    async def go_on(self, bounds: Bounds) -> None:
        """Have the link attached to the supervisor of a program that another daemon has started.

        Raises TransportError where it cannot be; LeaseLost where a newer leader has the host.
        """
        if not self._script.begun:
            raise self._no_start()
        self._beat = bounds.beat
        self._use_lease()
        with trio.move_on_after(bounds.start):
            said = await self._hear_of_program()
            if self._root is None or (self._init is None) != (self._launch.namespaces is None):
                raise TransportError("how it was started is not how programs are started now")
            self._may_have_started = self._has_started = True
            self._hear_message(f"attached {said}")
            trio.lowlevel.spawn_system_task(self._carry)
            return
        raise slow_shell(self._host, bounds.start)

    async def _hear_of_program(self) -> str:
        """Note what the host says of a program, and return what follows ``attached``."""
        while (found := await self._script.next()) is not None:
            name, _, rest = found[1].partition(" ")
            match name:
                case "attached":
                    return rest
                case "number":
                    self._supervision.hear(found[1])
                case "root" | "namespace" | "started":
                    self._note(found[1])
                case "errors":
                    pass
                case _ if name in (LOST, UNLED):
                    raise refused_leader(self._host, name)
                case _:
                    program = self._launch.command.argv[0][:80]
                    what = f"could not go on with {program} on host {self._host}: {name[:100]}"
                    raise TransportError(what)
        raise self._no_start()
