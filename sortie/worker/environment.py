"""What a run's programs are given: variables, and hooks run with them."""

from __future__ import annotations

import os

import trio
from msgspec.structs import replace

from sortie.model import LOCAL, cut
from sortie.model.traces import hook_part
from sortie.telemetry import Publish, facts
from sortie.worker.context import Assignment, RunContext
from sortie.worker.outcome import delivery_needed
from sortie.workspaces import (
    GitWork,
    HookOutcome,
    HookResult,
    RunVariables,
    Workspace,
    agent_env,
    git_head,
    hook_env,
    remote_agent_env,
    remote_hook_env,
    run_hook,
    unsaved_work,
    work_since,
)
from sortie.workspaces.git_values import agent_variables

SHOWN = 600
"""Characters of a hook's last line that stand in the error of its run."""


class RunEnvironment:
    """The environment of one run's agent and hooks."""

    def __init__(self, job: Assignment, context: RunContext, workspace: Workspace) -> None:
        self._job = job
        self._context = context
        self._is_remote = workspace.host != LOCAL
        self._variables = RunVariables(
            issue_id=job.issue.id,
            issue_identifier=job.issue.identifier,
            workspace=workspace.path,
            attempt=job.attempt,
            run_id=job.run_id,
            ssh_host=None if workspace.host == LOCAL else workspace.host,
        )

    def for_agent(self) -> dict[str, str]:
        """Return the agent's environment."""
        context = self._context
        if self._is_remote:
            names = context.handed_over
            return remote_agent_env(context.environ, names, self._variables, context.secrets)
        return agent_env(context.environ, self._variables, context.secrets)

    def for_git(self) -> dict[str, str]:
        """Return the environment of Sortie's own git commands."""
        return self._for_hook(here=False)

    def for_verification(self, path: str) -> dict[str, str]:
        """Return the environment of a command that runs what an agent wrote: a hook's, but for the
        keys of the user."""
        env = self._for_hook(here=False) | {"SORTIE_WORKSPACE": path}
        if "SSH_AUTH_SOCK" not in self._context.settings.hooks.pass_env:
            env.pop("SSH_AUTH_SOCK", None)
        return env

    def for_reviewer(self) -> dict[str, str]:
        """Return the environment of an agent that only reads: git finds no credential in it."""
        env = self.for_agent()
        env.pop("SSH_AUTH_SOCK", None)
        return env | {
            "GIT_TERMINAL_PROMPT": "0",
            "GIT_CONFIG_COUNT": "1",
            "GIT_CONFIG_KEY_0": "credential.helper",
            "GIT_CONFIG_VALUE_0": "",
        }

    async def unsaved_work(self, path: str) -> str | None:
        """Return what of a workspace is nowhere else, None where nothing is.

        Raises TransportError where its host cannot be asked, or for a shortage on this machine.
        """
        env = self._for_hook(here=False)
        return await unsaved_work(self._context.transport, path, env)

    async def git_head(self, path: str) -> GitWork:
        """Return which commit is checked out in a workspace, and nothing else of its git tree."""
        return await git_head(self._context.transport, path, self._for_hook(here=False))

    async def work_since(self, path: str, base: str | None) -> GitWork:
        """Return what was done in a workspace's git tree since a commit, without secrets."""
        redact = self._context.redact
        env = self._for_hook(here=False)
        work = await work_since(self._context.transport, path, env, base)
        return replace(
            work,
            branch=None if work.branch is None else redact(work.branch),
            subjects=tuple(map(redact, work.subjects)),
            error=None if work.error is None else redact(work.error),
        )

    def _for_hook(self, *, here: bool) -> dict[str, str]:
        give = hook_env if here or not self._is_remote else remote_hook_env
        names = self._context.settings.hooks.pass_env
        return give(self._context.environ, names, self._variables, self._context.secrets)

    async def run_hook(self, name: str, workspace: Workspace, publish: Publish) -> str | None:
        """Run a hook, if the settings have one, and return what went wrong, or None.

        Raises TransportError where that is the host, or a shortage on this machine.
        """
        settings = self._context.settings
        script: str | None = getattr(settings.hooks, name)
        if script is None:
            return None
        here = settings.hooks.run_on == "orchestrator"
        began = trio.current_time()
        result: HookResult | None = None
        env, trace = self._for_hook(here=here), self._job.trace
        try:
            result = await run_hook(
                self._context.local if here else self._context.transport,
                script,
                cwd=os.path.dirname(self._context.workflow) if here else workspace.path,
                env=env if trace is None else trace.variables(env, hook_part(name)),
                timeout=settings.hooks.timeout,
                grace=settings.agent.stop_grace,
            )
        finally:
            ended = result or _cut_short(trio.current_time() - began)
            publish(self._completed(name, ended))
        if result.trouble is not None:
            raise result.trouble
        if result.result is HookOutcome.OK:
            return None
        last = result.output.strip().splitlines()[-1:] or ["no output"]
        said = cut(self._context.redact(last[0]), SHOWN)
        return f"hook {name}: {result.status}: {said}"

    def _completed(self, name: str, result: HookResult) -> facts.HookCompleted:
        return facts.HookCompleted(
            hook=name,
            result=result.result.value,
            seconds=result.seconds,
            issue_identifier=self._job.issue.identifier,
            run_id=self._job.run_id,
            status=result.status,
            output=result.output,
        )


async def agent_environment(environment: RunEnvironment, context: RunContext) -> dict[str, str]:
    """Return the agent's environment, with what git needs to push only where it may."""
    env, remote = environment.for_agent(), context.remote
    if remote is None:
        return env
    if not context.settings.repository.agent_pushes:
        if remote.url.scheme == "ssh":
            env.pop("SSH_AUTH_SOCK", None)
        return env
    with delivery_needed():
        return env | agent_variables(remote.url, await remote.access(), env)


def _cut_short(seconds: float) -> HookResult:
    """Say how a hook ended whose run was stopped meanwhile."""
    return HookResult(
        result=HookOutcome.FAILED, seconds=seconds, status="cut short with its run", output=""
    )
