"""The agent that works on a demo: a simulated one, or one that is installed."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from msgspec import Struct, field

from sortie.model import AgentError, SortieError

if TYPE_CHECKING:
    from sortie.cli.demo.directory import Demo

_SIMULATED_KIND = "kiro"
_SIMULATOR = "sortie-kiro-sim"


class DemoAgent(Struct, frozen=True, kw_only=True):
    """What a demo's WORKFLOW.md says of its agent, and whether that only stands in for one."""

    kind: str
    command: str | tuple[str, ...]
    block: Mapping[str, Mapping[str, object]] = field(default_factory=dict)
    simulated: bool = False

    @property
    def program(self) -> str:
        """The program's name, to be shown."""
        first = self.command.split()[0] if isinstance(self.command, str) else self.command[0]
        return os.path.basename(first)


def simulated_agent() -> DemoAgent:
    """Return the agent that needs no program, no key and no model."""
    return _agent(_SIMULATED_KIND, simulator_command(sys.executable))


def installed_agent(kind: str, command: str | None, environ: Mapping[str, str]) -> DemoAgent:
    """Return an agent of a kind, by its own command or another one.

    Raises SortieError where there is no such kind, or no such program.
    """
    from sortie.agents import ADAPTERS

    try:
        adapter = ADAPTERS.load(kind)
    except LookupError as error:
        raise SortieError(f"--agent {kind}: {error.args[0]}") from error
    agent = _agent(kind, command or adapter.default_command)
    _require_program(agent, environ)
    return agent


def agent_of(demo: Demo, environ: Mapping[str, str]) -> DemoAgent | None:
    """Return the agent that a demo's WORKFLOW.md names, None where it cannot be read."""
    from sortie.agents import ADAPTERS
    from sortie.daemon.options import RunOptions
    from sortie.daemon.workflow_file import load_workflow

    try:
        settings = load_workflow(RunOptions(workflow=demo.workflow, environ=environ)).settings
    except SortieError:
        return None  # the daemon reads it again, and says what is wrong
    kind = settings.agent.kind
    return _agent(kind, settings.agent.command or ADAPTERS.load(kind).default_command)


def simulator_command(python: str) -> tuple[str, ...]:
    """Return the command that starts the simulator installed beside an interpreter."""
    script = os.path.join(os.path.dirname(os.path.abspath(python)), _SIMULATOR)
    if os.access(script, os.X_OK) and os.path.isfile(script):
        return (script,)
    return (python, "-P", "-m", "sortie.kiro.simulator")


def _agent(kind: str, command: str | tuple[str, ...]) -> DemoAgent:
    from sortie.agents import ADAPTERS

    adapter = ADAPTERS.load(kind)
    words = command.split() if isinstance(command, str) else command
    return DemoAgent(
        kind=kind,
        command=command,
        block={adapter.block_name: adapter.demo} if adapter.demo else {},
        simulated=any(os.path.basename(word) in adapter.simulators for word in words),
    )


def _require_program(agent: DemoAgent, environ: Mapping[str, str]) -> None:
    import trio

    from sortie.agents.launch import resolve_command
    from sortie.transports.local import LocalTransport

    path = environ.get("PATH")
    transport: Any = LocalTransport(path or os.defpath)
    try:
        trio.run(resolve_command, agent.command, "", transport, path)
    except AgentError as error:
        raise SortieError(
            f"the demo needs {agent.kind} and cannot find its program: {error}; name another one"
            " with --agent-command, or leave --agent out for simulated agents, which need nothing"
        ) from error
