"""The port to places whose programs outlive the daemon, so that another one can go on with them."""

from __future__ import annotations

from collections.abc import Collection
from contextlib import AbstractAsyncContextManager
from typing import Protocol, runtime_checkable

from sortie.transports import Command, Process


@runtime_checkable
class KeptProcess(Protocol):
    """A running program that another daemon can go on with."""

    def let_go(self) -> None:
        """Have the program live on when its block is left, for as long as it lives without a
        link."""
        ...


@runtime_checkable
class KeepsPrograms(Protocol):
    """A transport whose programs outlive the daemon, so that another one can go on with them."""

    @property
    def keeps_programs(self) -> bool:
        """Whether they do, by the settings in force."""
        ...

    async def kept(self, names: Collection[str]) -> Collection[str]:
        """Return which of these programs can be gone on with: they live, or their end is kept, and
        nothing of their output was removed. Call it before anything else is done on the host.

        The former daemon can neither hear nor end them any more. Raises HostError, LeaseLost.
        """
        ...

    def adopted(self, command: Command, name: str) -> AbstractAsyncContextManager[Process]:
        """Go on with a program that another daemon has started by such a command, as ``process``
        does with a new one. All of its output comes, from the beginning on.

        Raises HostError DISRUPTED where that cannot be done; what is left of the run is ended then.
        """
        ...
