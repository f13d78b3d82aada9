"""Which Sortie this is, as people are told."""

from __future__ import annotations

import sys

from sortie import __version__
from sortie.cli.output import emit_line


def show_version() -> int:
    """Print the version for people and return the exit code."""
    emit_line(f"sortie {__version__} (Python {python_version()})")
    return 0


def python_version() -> str:
    """Return the version of Python that this runs on."""
    return ".".join(map(str, sys.version_info[:3]))
