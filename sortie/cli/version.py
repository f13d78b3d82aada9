"""``sortie version``."""

from __future__ import annotations

from sortie import __version__
from sortie.cli.arguments import OutputFormat
from sortie.cli.output import Format, emit_json
from sortie.cli.version_line import python_version, show_version


def version(output: OutputFormat = Format.TEXT) -> None:
    """Show which Sortie this is, and on which Python it runs."""
    if output is Format.JSON:
        emit_json({"version": __version__, "python_version": python_version()})
    else:
        show_version()
