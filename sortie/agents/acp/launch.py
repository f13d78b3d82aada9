"""How a process of an agent is started."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, field

from sortie.transports import Command, Transport


@dataclass(frozen=True, slots=True, kw_only=True)
class Launch:
    """How a process is started; ``agent`` is how messages call it."""

    agent: str
    command: Command
    transport: Transport
    secrets: Collection[str] = field(repr=False)
    redacted: Callable[[str], str] = field(repr=False)
