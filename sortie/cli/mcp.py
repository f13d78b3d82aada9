"""``sortie mcp``: the tools of the run in a workspace, for any client of MCP."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

from sortie.cli.parameters import argument
from sortie.model import SortieError

_SCRIPT = Path(".sortie", "tools", "connect.sh")


def mcp(
    workspace: Annotated[
        Path, argument(metavar="[WORKSPACE]", help="The workspace of a run that is under way.")
    ] = Path("."),
) -> None:
    """Connect stdin and stdout to the tools of the run in a workspace.

    It is what an agent starts by itself; give it to other clients of MCP, which then speak for
    that run.
    """
    script = workspace / _SCRIPT
    if not script.is_file():
        raise SortieError(
            f"no run with tools is under way in {workspace.absolute()}; start this in the workspace"
            " of one whose settings have tools"
        )
    os.execv("/bin/sh", ["/bin/sh", str(script)])
