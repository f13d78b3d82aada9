"""The wall of a run: had while its agent and the commands of verify run, and left whatever
happens."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager

from sortie.model import ErrorKind, RunId, SortieError, TransportError
from sortie.resources import shortage_behind
from sortie.scheduler import events as ev
from sortie.telemetry import facts
from sortie.worker.context import RunContext, RunReporter
from sortie.worker.outcome import Abandoned
from sortie.workspaces import Workspace


@asynccontextmanager
async def within_wall(
    run_id: RunId, context: RunContext, reporter: RunReporter, workspace: Workspace
) -> AsyncIterator[None]:
    """Have the wall of a run, if the settings want one. Raises Abandoned where it cannot be had.

    Where no program can be started in it, the issue is held as one whose agent is missing is:
    trying again does not help.
    """
    async with AsyncExitStack() as stack:
        if context.wall is not None:
            try:
                await context.wall.check()
            except SortieError as exc:
                hopeless = shortage_behind(exc) is None
                kind = ErrorKind.AGENT_NOT_FOUND if hopeless else ErrorKind.PORT_EXIT
                raise Abandoned(kind, str(exc)) from exc
            try:
                around = context.wall.around(run_id, workspace.path)
                opened = await stack.enter_async_context(around)
            except TransportError as exc:
                raise Abandoned(ErrorKind.PORT_EXIT, str(exc)) from exc
            if opened is not None:
                digest = f"sha256:{opened.digest}"
                reporter.tell(ev.ContainerMade(run_id, opened.image, digest))
                reporter.publish(
                    facts.ContainerStarted(
                        run_id=run_id,
                        container=opened.container,
                        image=opened.image,
                        digest=opened.digest,
                    )
                )
        yield


@asynccontextmanager
async def within_wall_of_clone(
    run_id: RunId, context: RunContext, path: str
) -> AsyncIterator[None]:
    """Have the wall of a run around a clean clone, too. Raises TransportError."""
    async with AsyncExitStack() as stack:
        if context.wall is not None:
            await stack.enter_async_context(context.wall.around(run_id, path))
        yield
