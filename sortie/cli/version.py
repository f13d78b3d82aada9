"""``sortie version``."""

from __future__ import annotations

import sys

from sortie import __version__
from sortie.cli.arguments import OutputFormat
from sortie.cli.output import Format, emit_json, emit_line


def version(output: OutputFormat = Format.TEXT) -> None:
    """Show which Sortie this is, and on which Python it runs."""
    if output is Format.JSON:
        emit_json({"version": __version__, "python_version": python_version()})
    else:
        show_version()


def show_version() -> None:
    """Print the version for people."""
    emit_line(f"sortie {__version__} (Python {python_version()})")


def python_version() -> str:
    """Return the version of Python that this runs on."""
    return ".".join(map(str, sys.version_info[:3]))
