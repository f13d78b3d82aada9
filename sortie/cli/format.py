"""Points and spans of time, as people read them: the log's zone, which is UTC, and said so."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

from sortie.model import LOCAL
from sortie.model.numbers import span

if TYPE_CHECKING:
    from sortie.web.issue import WorkspaceView


def place_text(workspace: WorkspaceView) -> str:
    """Write where a workspace is; this machine needs no name."""
    on = "" if workspace.host == LOCAL else f" on {workspace.host}"
    return f"{workspace.path}{on}"


def utc(time: datetime) -> str:
    """Write an aware time in UTC, to the second."""
    return time.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%SZ")


def between(begin: datetime, end: datetime) -> str:
    """Write how long it is from one time to another."""
    return span((end - begin).total_seconds())
