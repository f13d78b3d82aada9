"""The command line: ``sortie``."""

from __future__ import annotations

import sys
from typing import NoReturn

EXIT_CUT_SHORT = 130


def main() -> NoReturn:
    """Run the command that the process was started with, and exit with its code."""
    try:
        from sortie.cli.errors import run_command
        from sortie.cli.streams import guarded_streams

        with guarded_streams():
            code = run_command(sys.argv[1:])
    except KeyboardInterrupt:
        code = EXIT_CUT_SHORT
    sys.exit(code)
