"""What the agent has left for Sortie in ``.sortie/status``."""

from __future__ import annotations

from sortie.model import ErrorKind, RunId, TransportError, WorkspaceError, cut
from sortie.telemetry import facts
from sortie.worker.context import RunContext, RunReporter
from sortie.worker.outcome import Abandoned, AgentStatus, host_error_behind
from sortie.workspaces import Workspace

UNKNOWN_STATUS_LIMIT = 100
"""Characters of a status file's first line that are shown where it means nothing."""


async def read_status(
    run_id: RunId,
    context: RunContext,
    reporter: RunReporter,
    workspace: Workspace,
    *,
    needed: bool,
) -> AgentStatus | None:
    """Read and remove what the agent left in ``.sortie/status``.

    Where it is needed, raises Abandoned when its host is lost: the word may be one that ends
    the run.
    """
    try:
        text = await context.workspaces.read_status(workspace.path)
    except (WorkspaceError, TransportError) as exc:
        if needed and host_error_behind(exc) is not None:
            raise Abandoned(ErrorKind.WORKSPACE_ERROR, str(exc)) from exc
        text = f"(unreadable: {exc})"
    if text is None:
        return None
    text = context.redact(text)
    status = AgentStatus.of(text)
    first_line = text.strip().partition("\n")[0].rstrip()
    reporter.publish(
        facts.StatusFileRead(
            run_id=run_id,
            word=cut(first_line, UNKNOWN_STATUS_LIMIT) if status is None else status.word.value,
            known=status is not None,
            reason=status.reason if status is not None else "",
        )
    )
    return status
