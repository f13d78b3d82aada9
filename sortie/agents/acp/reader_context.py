"""What reading the messages of an agent depends on."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

from msgspec import Struct

from sortie.agents.acp.settings import AcpSettings
from sortie.model.asked_permissions import AskedPermissions
from sortie.model.hiding import repr_without


class ReaderContext(Struct, frozen=True, kw_only=True):
    """What reading depends on: the agent's name for itself, and what of the session counts.

    ``redacted`` puts something else in the place of secrets. ``now`` returns the time, with a zone.
    ``server`` is the name of the MCP server whose tools need no permission, None without one.
    ``permissions`` are asked of people by it; None where they cannot be asked.
    """

    agent: str
    workspace: str
    settings: AcpSettings
    now: Callable[[], datetime]
    redacted: Callable[[str], str]
    server: str | None = None
    permissions: AskedPermissions | None = None

    __repr__ = repr_without("redacted")
