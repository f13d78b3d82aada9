"""Tells once for each link to a host how PID namespaces are made there, by making one."""

from __future__ import annotations

from collections.abc import Callable

import trio

from sortie.transports.remote.launch import nonsense
from sortie.transports.remote.namespaces import Namespaces, NoNamespaces, read_probe
from sortie.transports.remote.questions import probe_body
from sortie.transports.remote.shell import Shell, ShellQuestion

_BOUND = 30.0


class NamespaceProbe:
    """What one host is known to give; ``link`` returns a number that is another after each new
    first link to it. ``tell`` gets a sentence for the operator with each answer."""

    def __init__(
        self,
        shell: Shell,
        link: Callable[[], int],
        tell: Callable[[str], object] | None = None,
    ) -> None:
        self._shell = shell
        self._link = link
        self._tell = tell
        self._lock = trio.Lock()
        self._found: Namespaces | NoNamespaces | None = None
        self._of = -1

    async def find(self) -> Namespaces | NoNamespaces:
        """Return how namespaces are made there. Raises HostError where it cannot be asked."""
        async with self._lock:
            if self._found is None or self._of != self._link():
                self._found = await self._ask()
                self._of = self._link()
                if self._tell is not None:
                    self._tell(self._found.sentence)
            return self._found

    def forget(self) -> None:
        """Have the next who asks try again."""
        self._found = None

    async def _ask(self) -> Namespaces | NoNamespaces:
        question = ShellQuestion(attempt="make a PID namespace", body=probe_body(), bound=_BOUND)
        answer = await self._shell.ask(question)
        try:
            return read_probe(answer.said)
        except ValueError as exc:
            raise nonsense(self._shell.host) from exc
