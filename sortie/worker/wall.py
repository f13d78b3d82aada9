"""The wall of a run: had while its agent and the commands of verify run, and left whatever
happens."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager

from sortie.model import ErrorKind, RunId, SortieError, TransportError
from sortie.resources import shortage_behind
from sortie.scheduler import events as ev
from sortie.telemetry import facts
from sortie.transports.walls import RunImage
from sortie.transports.walls.devcontainer import PLACES, DevcontainerRefused, read_devcontainer
from sortie.worker.context import Assignment, RunContext, RunReporter
from sortie.worker.environment import RunEnvironment
from sortie.worker.outcome import Abandoned, delivery_needed
from sortie.workspaces import Workspace

_SHOWN = 50
"""Names that are logged."""


@asynccontextmanager
async def within_wall(
    job: Assignment, context: RunContext, reporter: RunReporter, workspace: Workspace
) -> AsyncIterator[None]:
    """Have the wall of a run, if the settings want one. Raises Abandoned where it cannot be had.

    Where no program can be started in it, or the base names no image that could be, the issue is
    held as one whose agent is missing is: trying again does not help.
    """
    async with AsyncExitStack() as stack:
        if context.wall is not None:
            run_id, image = job.run_id, None
            try:
                await context.wall.check()
            except SortieError as exc:
                hopeless = shortage_behind(exc) is None
                kind = ErrorKind.AGENT_NOT_FOUND if hopeless else ErrorKind.PORT_EXIT
                raise Abandoned(kind, str(exc)) from exc
            if context.wall.wants_image:
                image = await _image_of_base(job, context, reporter, workspace)
            try:
                around = context.wall.around(run_id, workspace.path, image)
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


async def _image_of_base(
    job: Assignment, context: RunContext, reporter: RunReporter, workspace: Workspace
) -> RunImage:
    """Return the image that the repository's base names. Raises Abandoned."""
    assert context.remote is not None
    repository = context.remote.at(os.path.dirname(workspace.path))
    env = RunEnvironment(job, context, workspace).for_git()
    with delivery_needed(ErrorKind.WORKSPACE_ERROR):
        found = await repository.base_file(PLACES, env)
    if found is None:
        raise Abandoned(
            ErrorKind.AGENT_NOT_FOUND,
            f"sandbox.devcontainer is set, and the base {repository.base} of the repository has"
            f" no {' and no '.join(PLACES)}; add one, or name an image in sandbox.image",
        )
    name, text = found
    try:
        said = read_devcontainer(text)
    except DevcontainerRefused as exc:
        problem = f"{name} of the base {repository.base} {exc}"
        raise Abandoned(ErrorKind.AGENT_NOT_FOUND, problem) from exc
    if said.ignored:
        reporter.publish(
            facts.DevcontainerRestricted(
                run_id=job.run_id, file=name, ignored=said.ignored[:_SHOWN]
            )
        )
    return RunImage(name=said.image, environ=said.environ)


@asynccontextmanager
async def within_wall_of_clone(
    run_id: RunId, context: RunContext, path: str
) -> AsyncIterator[None]:
    """Have the wall of a run around a clean clone, too. Raises TransportError."""
    async with AsyncExitStack() as stack:
        if context.wall is not None:
            await stack.enter_async_context(context.wall.around(run_id, path))
        yield
