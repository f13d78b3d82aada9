"""The command line: ``sortie``."""

from __future__ import annotations

import sys
from typing import NoReturn

EXIT_CUT_SHORT = 130


def main() -> NoReturn:
    """Run the command that the process was started with, and exit with its code."""
    try:
        from sortie.cli.streams import guarded_streams

        with guarded_streams():
            code = _run(sys.argv[1:])
    except KeyboardInterrupt:
        code = EXIT_CUT_SHORT
    sys.exit(code)


def _run(arguments: list[str]) -> int:
    from sortie.resources.garbage import few_searches

    with few_searches():
        from sortie.cli.errors import run_command

        return run_command(arguments)
