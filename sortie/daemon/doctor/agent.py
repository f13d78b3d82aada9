"""The checks of the agent on this machine: its program, and what its adapter asks of it."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence

from msgspec.structs import replace

from sortie import agents
from sortie.agents import AgentAdapter, AgentLook, SessionParams
from sortie.agents.launch import resolve_command
from sortie.config.settings import Settings
from sortie.model import AgentError, RunId
from sortie.model.checks import Check, CheckResult, failed, passed, warned
from sortie.model.secrets import SHORTEST_CREDENTIAL
from sortie.transports import Transport

_INSTALL = (
    "install it, see docs/agents; to try Sortie out without it, set agent.command to"
    " sortie-kiro-sim"
)
_DOCTOR_RUN = RunId("doctor")


def key_values(environ: Mapping[str, str], names: Sequence[str]) -> frozenset[str]:
    """Return the values of variables that may hold a key."""
    values = (environ.get(name, "").strip() for name in names)
    return frozenset(value for value in values if len(value) >= SHORTEST_CREDENTIAL)


def agent_checks(
    settings: Settings, transport: Transport, environ: Mapping[str, str]
) -> Sequence[Check]:
    """Return the checks; where runs are remote, the program is looked for on the hosts."""
    adapter = agents.ADAPTERS.load(settings.agent.kind)
    look = AgentLook(
        command=settings.agent.command,
        settings=settings.block(adapter.block_name),
        params=SessionParams(
            run_id=_DOCTOR_RUN,
            workspace=_directory(environ),
            transport=transport,
            env=environ,
            read_timeout=settings.agent.read_timeout,
            stop_grace=settings.agent.stop_grace,
        ),
        remote=bool(settings.worker.hosts),
    )
    if look.remote:
        return adapter.checks(look)
    own = [replace(check, needs=("program", *check.needs)) for check in adapter.checks(look)]
    return (_program(adapter, look), *own, *_reviewers(settings, look))


def _reviewers(settings: Settings, look: AgentLook) -> Iterator[Check]:
    """Yield the check of the program that reviews, where that is another agent's."""
    review = settings.self_review
    kind = None if review is None else review.agent
    if kind is None or kind == settings.agent.kind or settings.repository.url is None:
        return
    check = _program(agents.ADAPTERS.load(kind), replace(look, command=None))
    yield replace(check, name="reviewer")


def _program(adapter: AgentAdapter, look: AgentLook) -> Check:
    async def ask() -> CheckResult:
        path = look.params.env.get("PATH")
        transport, default = look.params.transport, adapter.default_command
        try:
            argv = await resolve_command(look.command, default, transport, path)
        except AgentError as error:
            return failed(str(error), _INSTALL)
        if any(os.path.basename(part) in adapter.simulators for part in argv):
            return warned(
                f"{argv[0]} only stands in for the {adapter.kind} agent: it works on nothing",
                "name the real one in agent.command when you have tried things out",
            )
        return passed(f"the {adapter.kind} agent is {argv[0]}")

    return Check(name="program", ask=ask)


def _directory(environ: Mapping[str, str]) -> str:
    """Return a directory in which a program can be asked something."""
    home = environ.get("HOME", "")
    return home if os.path.isabs(home) and os.path.isdir(home) else "/"
