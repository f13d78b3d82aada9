"""``sortie demo``: a small world to look at, with nothing to set up."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import typer

from sortie.cli.arguments import DaemonFlags
from sortie.cli.output import emit_rich

_REDIRECTING = ("SORTIE_DB_PATH", "SORTIE_AGENT_COMMAND", "SORTIE_AGENT_KIND")
_REDIRECTING_PREFIXES = ("SORTIE_TRACKER_", "SORTIE_WORKSPACE_")
_IDLE_CODES = (0, 3)


def demo(
    flags: DaemonFlags,
    directory: Annotated[
        Path, typer.Argument(metavar="DIR", help="Where to put it; made where it does not exist.")
    ] = Path("sortie-demo"),
) -> int:
    """Write five issues and let simulated agents work on them.

    Needs nothing: no tracker, no Kiro, no key. A demo that is there already is gone on with, and
    no file is overwritten. Settings of the environment that would turn the demo to another
    tracker, agent, database or workspace root are ignored.
    """
    from sortie.cli.demo.directory import make_demo
    from sortie.cli.demo.report import conclusion, introduction
    from sortie.daemon.daemon import run_daemon
    from sortie.daemon.options import RunOptions

    made = make_demo(directory)
    emit_rich(introduction(made, to_the_end=flags.exit_when_idle))
    environ = demo_environment(os.environ, made.directory)
    code = run_daemon(flags.over(RunOptions(workflow=made.workflow, environ=environ)))
    if code in _IDLE_CODES:
        emit_rich(*conclusion(made))
    return code


def demo_environment(environ: Mapping[str, str], directory: Path) -> dict[str, str]:
    """Return an environment in which the demo finds a key, and only its own world.

    What the simulator keeps of its conversations must not lie where Kiro would keep its own.
    """
    kept = {
        name: value
        for name, value in environ.items()
        if name not in _REDIRECTING and not name.startswith(_REDIRECTING_PREFIXES)
    }
    if not kept.get("KIRO_API_KEY"):
        kept["KIRO_API_KEY"] = "simulated"
    kept["XDG_DATA_HOME"] = str(directory.absolute() / "data")
    return kept
