"""What has to succeed before the work of a run is delivered: commands, and a look for secrets."""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import AsyncExitStack

import trio

from sortie.model import CommandResult, VerificationResult
from sortie.model.texts import end_of
from sortie.telemetry import facts
from sortie.worker.context import Assignment, RunContext, RunReporter
from sortie.worker.environment import RunEnvironment
from sortie.worker.wall import within_wall_of_clone
from sortie.workspaces import HookOutcome, Workspace, run_hook
from sortie.workspaces.git_values import GitAccess, Incomplete
from sortie.workspaces.repository import Repository

TAIL_LIMIT = 3000
"""Characters of a command's output that are kept, and told to the agent."""


async def verify(
    job: Assignment,
    context: RunContext,
    reporter: RunReporter,
    workspace: Workspace,
    commit: str,
    access: GitAccess,
) -> VerificationResult:
    """Run the commands one after the other, up to the first that fails.

    Raises WorkspaceError and TransportError where they could not be run at all.
    """
    settings, remote = context.settings.verify, context.remote
    assert remote is not None
    environment = RunEnvironment(job, context, workspace)
    path = workspace.path
    repository = remote.at(os.path.dirname(path))
    results: list[CommandResult] = []
    commands = settings.commands
    try:
        async with AsyncExitStack() as stack:
            if commands and settings.where == "clean":
                env, path = environment.for_git(), repository.clean_path(workspace.key)
                lacking = await repository.clean_clone(workspace.key, commit, access, env)
                if lacking is None:
                    wall = within_wall_of_clone(job.run_id, context, path)
                    await stack.enter_async_context(wall)
                else:
                    results.append(_failed_checkout(context, lacking))
                    commands = ()
            for command in commands:
                results.append(await _verified(job, context, reporter, environment, command, path))
                if not results[-1].ok:
                    break
    finally:
        if path != workspace.path:
            with trio.CancelScope(shield=True):
                await repository.remove_clean_clone(workspace.key)
    return VerificationResult(commit=commit, where=settings.where, commands=tuple(results))


async def _verified(
    job: Assignment,
    context: RunContext,
    reporter: RunReporter,
    environment: RunEnvironment,
    command: str,
    path: str,
) -> CommandResult:
    """Run a command in a directory. Raises WorkspaceError and TransportError."""
    result = await run_hook(
        context.inside,
        command,
        cwd=path,
        env=environment.for_verification(path),
        timeout=context.settings.verify.timeout,
        grace=context.settings.agent.stop_grace,
    )
    if result.trouble is not None:
        raise result.trouble
    told = CommandResult(
        command=command,
        ok=result.result is HookOutcome.OK,
        status=result.status,
        seconds=result.seconds,
        tail=end_of(context.redact(result.output), TAIL_LIMIT),
    )
    reporter.publish(
        facts.CommandVerified(
            run_id=job.run_id,
            command=command,
            ok=told.ok,
            status=told.status,
            seconds=told.seconds,
        )
    )
    return told


def _failed_checkout(context: RunContext, lacking: Incomplete) -> CommandResult:
    return CommandResult(
        command=lacking.command,
        ok=False,
        status="failed",
        seconds=0.0,
        tail=end_of(context.redact(lacking.said), TAIL_LIMIT),
    )


async def secret_in(
    context: RunContext, repository: Repository, env: Mapping[str, str], head: str
) -> str | None:
    """Return where the commits hold a secret that Sortie knows, None where they do not."""
    found: list[str] = []

    def look(object_id: str, piece: bytes) -> None:
        if not found:
            text = piece.decode("utf-8", "replace")
            if context.redact(text) != text:
                found.append(object_id)

    await repository.each_object(head, env, look)
    if not found:
        return None
    path = await repository.path_of(head, found[0], env)
    return path or f"the message of commit {found[0][:12]}"
