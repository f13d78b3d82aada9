"""The program as typer runs it, and how its complaints are told."""

from __future__ import annotations

import typer
from typer.main import get_command

from sortie.cli.app import app
from sortie.cli.completion import serve_shells
from sortie.cli.output import complain

_PARSERS_WORDS = "Value error, "


def run_typer(arguments: list[str]) -> object:
    """Have typer read a line and run its command; return what that returns, or an exit code."""
    serve_shells()
    try:
        return get_command(app).main(arguments, prog_name="sortie", standalone_mode=False)
    except typer.TyperException as error:
        complain(_usage(error))
        return error.exit_code


def _usage(error: typer.TyperException) -> str:
    message = error.format_message().replace(_PARSERS_WORDS, "").rstrip(".")
    command = getattr(getattr(error, "ctx", None), "command_path", "sortie")
    return f"{message}; see '{command} --help'"
