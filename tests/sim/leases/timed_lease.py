"""The product's leases by the clocks of simulated machines."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from unittest import mock

from sortie.daemon import candidacy
from sortie.resources import lease

BOOT: ContextVar[Callable[[], float]] = ContextVar("BOOT")
"""The boot clock of the machine on which a task runs."""


@contextmanager
def leases_by_simulated_clocks() -> Iterator[None]:
    """Have the product's leases count by the clock of the machine of each task."""

    def boot_time() -> float:
        return BOOT.get()()

    with (
        mock.patch.object(lease, "boot_time", boot_time),
        mock.patch.object(candidacy, "boot_time", boot_time),
    ):
        yield
