"""The tools of a run's agent: had while its session is, where the settings name any."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager

from msgspec.structs import replace

from sortie.model.secrets import redactor
from sortie.tools import RunTools
from sortie.tools.calls import ToolCalls
from sortie.tools.channel import ToolChannel, ToolPlace, tool_channel
from sortie.worker.context import Assignment, RunContext, RunReporter
from sortie.workspaces import Workspace

_VARIABLES = ("PATH", "HOME", "LANG")
_OF_SORTIE = "SORTIE_"


def without_token(context: RunContext, token: str) -> RunContext:
    """Return a context that hides the token of a run's tools, too, wherever it hides secrets."""
    if not token:
        return context
    hidden, known = redactor([token]), context.redact
    return replace(context, redact=lambda text: hidden(known(text)))


@asynccontextmanager
async def tools_for(
    job: Assignment,
    context: RunContext,
    reporter: RunReporter,
    workspace: Workspace,
    env: Mapping[str, str],
    tools: RunTools,
    token: str,
) -> AsyncIterator[ToolChannel | None]:
    """Have the tools that the settings name, None where they name none, or there are none to be
    had; ``env`` is the agent's."""
    names = context.tools
    if not names:
        yield None
        return
    shown = {
        name: value
        for name, value in env.items()
        if name in _VARIABLES or name.startswith(_OF_SORTIE)
    }
    place = ToolPlace(
        run_id=job.run_id,
        workspace=workspace.path,
        transport=context.inside,
        env=shown,
        token=token,
    )
    calls = ToolCalls(job.run_id, names, tools, reporter.publish, context.redact)
    async with tool_channel(place, calls, reporter.publish) as channel:
        yield channel
