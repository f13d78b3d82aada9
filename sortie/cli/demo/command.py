"""``sortie demo``: a small world to look at, with nothing to set up."""

from __future__ import annotations

import os
from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from sortie.cli.arguments import DaemonFlags
from sortie.cli.output import emit, emit_rich
from sortie.cli.parameters import WrongUsage, argument, option
from sortie.model import SortieError

if TYPE_CHECKING:
    from sortie.cli.demo.agent import DemoAgent
    from sortie.cli.demo.directory import Demo

_REDIRECTING = ("SORTIE_DB_PATH", "SORTIE_AGENT_COMMAND", "SORTIE_AGENT_KIND")
_REDIRECTING_PREFIXES = ("SORTIE_TRACKER_", "SORTIE_WORKSPACE_")
_IDLE_CODES = (0, 3)


class DemoSandbox(StrEnum):
    """The sandboxes that need no settings: a program, or the engine of containers."""

    BUBBLEWRAP = "bubblewrap"
    PODMAN = "podman"
    DOCKER = "docker"


def demo(
    flags: DaemonFlags,
    directory: Annotated[
        Path, argument(metavar="DIR", help="Where to put it; made where it does not exist.")
    ] = Path("sortie-demo"),
    agent: Annotated[
        str | None,
        option(
            metavar="KIND",
            help="Let an agent that is installed do the work, as agent.kind names it; its model"
            " is asked, and its provider charges for that.",
        ),
    ] = None,
    agent_command: Annotated[
        str | None,
        option(metavar="COMMAND", help="The program of that agent, where it is not the usual one."),
    ] = None,
    sandbox: Annotated[
        DemoSandbox | None,
        option(
            help="Start the agents in a sandbox: bubblewrap, or containers of an engine, whose"
            " image shows this machine's directories; real agents need one of their own."
        ),
    ] = None,
    review: Annotated[
        bool, option("--review", help="Show in the end what each branch changes.")
    ] = False,
) -> int:
    """Write five issues and let simulated agents work on them, or real ones.

    Needs nothing: no tracker, no agent, no key. Where there is git, the agents work in clones of a
    small repository beside the issues, and their branches are pushed to it. With --agent that agent
    has to be installed and logged in. A demo that is there already is gone on with, and no file is
    overwritten. Settings of the environment that would turn the demo to another tracker, agent,
    database or workspace root are ignored.
    """
    from sortie.cli.demo.agent import agent_of, installed_agent
    from sortie.cli.demo.directory import make_demo
    from sortie.cli.demo.image import require_image, write_engine_program
    from sortie.cli.demo.report import branches, conclusion, introduction
    from sortie.daemon.options import RunOptions
    from sortie.daemon.process import run_daemon

    if agent_command is not None and agent is None:
        raise WrongUsage("belongs to --agent", parameter="--agent-command")
    engine = engine_of(sandbox, agent)
    wanted = None if agent is None else installed_agent(agent, agent_command, os.environ)
    if engine is not None:
        require_image(engine, os.environ)
    made = make_demo(directory, wanted, sandbox)
    if engine is not None:
        write_engine_program(engine, made.directory, os.environ)
    bare = demo_environment(os.environ)
    works = agent_of(made, bare)
    require_agent(made, wanted, works)
    simulated = works is None or works.simulated
    emit_rich(introduction(made, works, to_the_end=flags.exit_when_idle))
    environ = simulated_environment(bare, made.directory) if simulated else bare
    code = run_daemon(flags.over(RunOptions(workflow=made.workflow, environ=environ)))
    if code in _IDLE_CODES:
        emit_rich(*conclusion(made))
        if review:
            emit(branches(made))
    return code


def engine_of(sandbox: DemoSandbox | None, agent: str | None) -> DemoSandbox | None:
    """Return the engine of the demo's containers, if any.

    Raises WrongUsage where a real agent is to work in one.
    """
    if sandbox is None or sandbox is DemoSandbox.BUBBLEWRAP:
        return None
    if agent is not None:
        raise WrongUsage(
            f"{sandbox} is for simulated agents, as {agent} needs an image with its program: see"
            " docs/sandbox.md",
            parameter="--sandbox",
        )
    return sandbox


def require_agent(demo: Demo, wanted: DemoAgent | None, works: DemoAgent | None) -> None:
    """Raise SortieError where a demo that was there already is of another agent."""
    if wanted is None or works is None:
        return
    if (wanted.kind, wanted.command) == (works.kind, works.command):
        return
    raise SortieError(
        f"{demo.directory} is a demo for {works.kind} ({works.program}); name another directory,"
        f" or change agent.kind, agent.command and the agent's block in {demo.workflow}"
    )


def demo_environment(environ: Mapping[str, str]) -> dict[str, str]:
    """Return an environment in which the demo finds only its own world."""
    return {
        name: value
        for name, value in environ.items()
        if name not in _REDIRECTING and not name.startswith(_REDIRECTING_PREFIXES)
    }


NO_KEY = "the-simulator-takes-any-key"
"""Stands for a key; as one, it is hidden wherever it stands, so it is no word of the demo."""


def simulated_environment(environ: Mapping[str, str], directory: Path) -> dict[str, str]:
    """Return an environment for the simulator: a key is there, and places for what it keeps.

    Its conversations must not lie where Kiro would keep its own.
    """
    key = environ.get("KIRO_API_KEY") or NO_KEY
    data = directory.absolute() / "data"
    places = {"XDG_DATA_HOME": str(data), "KIRO_HOME": str(data / "kiro")}
    return {**environ, "KIRO_API_KEY": key, **places}
