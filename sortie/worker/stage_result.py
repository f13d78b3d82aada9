"""What a run leaves for the next stage of its issue: the text of a file in the workspace."""

from __future__ import annotations

from contextlib import suppress

from sortie.model import TransportError, WorkspaceError
from sortie.worker.context import RunContext
from sortie.workspaces import Workspace

RESULT_LIMIT = 64 * 1024
"""Bytes of a result that are kept; what is longer is cut."""

_OWN = ".sortie/"


async def stage_result(context: RunContext, workspace: Workspace) -> str | None:
    """Return what the file holds, "" where there is none; None where no rule decides, or the file
    cannot be read."""
    name = context.settings.stage_result
    if not name:
        return None
    try:
        content = await context.workspaces.read_inside(workspace.path, name, RESULT_LIMIT)
    except (WorkspaceError, TransportError):
        return None
    text = (content or b"").decode("utf-8", "replace")
    if content is not None and len(content) >= RESULT_LIMIT:  # half a secret is not known for one
        text = text.rpartition("\n")[0] + "\n(cut here)"
    return context.redact(text).strip()


async def clear_stage_result(context: RunContext, workspace: Workspace) -> None:
    """Delete the file that an earlier run left, unless it belongs to the repository."""
    name = context.settings.stage_result
    if name.startswith(_OWN):
        with suppress(WorkspaceError, TransportError):
            await context.workspaces.clear_inside(workspace.path, name)
