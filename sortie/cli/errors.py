"""Where a command ends: its exit code, and what is said where it failed.

An expected failure is one line on stderr. Anything else is a bug and leaves as a traceback.
"""

from __future__ import annotations

from collections.abc import Sequence

import typer
from typer.main import get_command

from sortie.cli.app import app
from sortie.cli.completion import serve_shells
from sortie.cli.output import EXIT_FAILURE, complain, ended, tell_problem
from sortie.model import SortieError, WorkflowError

_PARSERS_WORDS = "Value error, "


def run_command(arguments: Sequence[str]) -> int:
    """Run one command and return its exit code; its streams are guarded already."""
    return ended(lambda: _run(list(arguments)))


def _run(arguments: list[str]) -> int:
    try:
        serve_shells()
        code = get_command(app).main(arguments, prog_name="sortie", standalone_mode=False)
    except typer.TyperException as error:
        complain(_usage(error))
        return error.exit_code
    except WorkflowError as error:
        for problem in error.problems:
            tell_problem(problem)
        complain(f"{_count(error)}; mend what is listed above and try again")
        return EXIT_FAILURE
    except SortieError as error:
        complain(str(error))
        return EXIT_FAILURE
    return code if isinstance(code, int) else 0


def _usage(error: typer.TyperException) -> str:
    message = error.format_message().replace(_PARSERS_WORDS, "").rstrip(".")
    command = getattr(getattr(error, "ctx", None), "command_path", "sortie")
    return f"{message}; see '{command} --help'"


def _count(error: WorkflowError) -> str:
    errors = [problem for problem in error.problems if problem.severity == "error"]
    return f"{errors[0].path}: {len(errors)} {'error' if len(errors) == 1 else 'errors'}"
