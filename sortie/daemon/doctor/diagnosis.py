"""All checks of a daemon, in the order in which their faults have to be mended."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping
from functools import partial

import trio

from sortie import agents
from sortie.config.settings import Settings
from sortie.daemon.doctor.agent import agent_checks, key_values
from sortie.daemon.doctor.checkup import Diagnosis, Tell, run_checks, skipped, without_secrets
from sortie.daemon.doctor.machine import machine_checks
from sortie.daemon.doctor.repository import RepositoryLook, usable_repositories
from sortie.daemon.doctor.tracker import look_at_tracker
from sortie.daemon.doctor.webhooks import webhook_checks
from sortie.daemon.guards import expected_failures
from sortie.daemon.options import RunOptions
from sortie.daemon.repositories import OpenRepository
from sortie.daemon.secrets_in_settings import secrets_of
from sortie.daemon.unusable_settings import unusable_settings
from sortie.daemon.workflow_file import load_workflow
from sortie.model import SortieError, WorkflowError
from sortie.model.checks import failed, passed, warned
from sortie.telemetry.log import configure
from sortie.transports.local import LocalTransport
from sortie.workflow.loader import Workflow
from sortie.workspaces import helper_env

PARTS = ("machine", "agent", "tracker")
"""What cannot be checked while the workflow file is not valid, besides hosts."""


def diagnose(options: RunOptions, tell: Tell, hosts: Collection[str] = ()) -> None:
    """Run all checks, or those of ``hosts`` alone, and report each as soon as it is over.

    Raises SortieError for a host that the settings do not name.
    """
    if options.content is None and not os.path.lexists(options.workflow):
        missing = failed(f"there is no {options.workflow}", _introduction(options))
        tell(Diagnosis(name="workflow", result=missing))
        _skip_parts(tell)
        return
    try:
        workflow = load_workflow(options)
    except WorkflowError as error:
        for problem in error.problems:
            kind = warned if problem.severity == "warning" else failed
            tell(Diagnosis(name="workflow", result=kind(str(problem), "")))
        _skip_parts(tell)
        return
    for problem in workflow.warnings:
        tell(Diagnosis(name="workflow", result=warned(str(problem), "")))
    tell(Diagnosis(name="workflow", result=passed(f"{options.workflow} can be used")))
    settings = workflow.settings
    hidden = secrets_of(settings)
    env_names = agents.ADAPTERS.load(settings.agent.kind).env_names
    known = hidden.values | key_values(options.environ, (*env_names, *settings.worker.ssh_pass_env))
    tell_safely = without_secrets(tell, known)
    if not hosts:
        _look_at_places(settings, tell_safely)
    _require_known(hosts, settings)
    configure(
        settings.logging.level,
        settings.logging.format,
        colours=options.colours,
        secrets=hidden.values,
    )
    with expected_failures():
        look = partial(_look_at_some, hosts) if hosts else _look
        trio.run(look, options, workflow, tell_safely)


def _introduction(options: RunOptions) -> str:
    name = "" if str(options.workflow) == "WORKFLOW.md" else f" {options.workflow}"
    return f"make one with 'sortie init{name}', or name the one that there is"


def _skip_parts(tell: Tell) -> None:
    for part in PARTS:
        tell(skipped(part, "workflow"))


def _look_at_places(settings: Settings, tell: Tell) -> None:
    flaws = list(unusable_settings(settings))
    for key, flaw in flaws:
        tell(Diagnosis(name=f"settings.{key}", result=failed(f"{key}: {flaw}", "")))
    if not flaws:
        usable = passed("the database and the workspaces can be where the settings have them")
        tell(Diagnosis(name="settings", result=usable))


def _require_known(hosts: Collection[str], settings: Settings) -> None:
    known = settings.worker.hosts
    for host in hosts:
        if host not in known:
            names = ", ".join(known) or "none, so that all runs are on this machine"
            raise SortieError(f"{host!r} is no host of worker.ssh_hosts; there are: {names}")


async def _look_at_some(
    hosts: Collection[str], options: RunOptions, workflow: Workflow, tell: Tell
) -> None:
    """Look at these hosts alone."""
    async with usable_repositories(workflow.settings, tell) as repositories:
        await _look_at_hosts(hosts, options, workflow.settings, repositories, tell)


async def _look_at_hosts(
    hosts: Collection[str],
    options: RunOptions,
    settings: Settings,
    repositories: tuple[OpenRepository, ...],
    tell: Tell,
) -> None:
    if not hosts:
        return
    if settings.worker.kubernetes is not None:
        from sortie.daemon.doctor.pods import look_at_pods  # needs kr8s

        await look_at_pods(settings, tell, hosts)
        return
    from sortie.daemon.doctor.hosts import look_at_hosts  # needs asyncssh

    helpers, looks = _helpers(options, settings), _looks_at(options, settings, repositories)
    await look_at_hosts(settings, options.environ, helpers, tell, hosts, next(iter(looks), None))


def _looks_at(
    options: RunOptions, settings: Settings, repositories: tuple[OpenRepository, ...]
) -> list[RepositoryLook]:
    environ = helper_env(options.environ, (), secrets_of(settings))
    return [
        RepositoryLook(settings=one.settings, repository=one, environ=environ)
        for one in repositories
    ]


def _helpers(options: RunOptions, settings: Settings) -> Mapping[str, str]:
    """Return the environment of programs that help, which needs no credential of the agent."""
    env_names = agents.ADAPTERS.load(settings.agent.kind).env_names
    return helper_env(options.environ, env_names, secrets_of(settings))


async def _look(options: RunOptions, workflow: Workflow, tell: Tell) -> None:
    settings, secrets = workflow.settings, secrets_of(workflow.settings)
    environ, helpers = helper_env(options.environ, (), secrets), _helpers(options, settings)
    transport = LocalTransport(options.environ.get("PATH", ""))
    try:
        await run_checks("machine", machine_checks(settings, transport, helpers), tell)
        if settings.store.url is not None:
            from sortie.daemon.doctor.store import store_checks

            await run_checks("store", store_checks(settings), tell)
        if settings.notifications:
            from sortie.daemon.doctor.notifications import notification_checks

            await run_checks("notifications", notification_checks(settings), tell)
        # What is in an image is looked for there, by the check of the sandbox.
        outside = [one for one in settings.every() if one.sandbox.kind != "container"]
        agents = {(one.agent.kind, one.agent.command): one for one in reversed(outside)}
        for one in reversed(agents.values()):
            await run_checks("agent", agent_checks(one, transport, environ), tell)
        if any(one.sandbox.kind != "none" for one in settings.every()):
            from sortie.daemon.doctor.sandbox import sandbox_checks

            await run_checks("machine", sandbox_checks(settings, options.environ), tell)
        hosts = settings.worker.hosts
        async with usable_repositories(settings, tell) as repositories:
            for look in _looks_at(options, settings, repositories):
                if not hosts:  # they fetch it by themselves
                    await look.look(transport, tell)
                if look.repository.forge is not None:
                    await run_checks("forge", look.repository.forge.checks(), tell)
            await _look_at_hosts(hosts, options, settings, repositories, tell)
    finally:
        await transport.close()
    await look_at_tracker(workflow, options.environ, tell)
    await run_checks("webhooks", webhook_checks(settings), tell)
