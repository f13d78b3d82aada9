"""Where a command ends: its exit code, and what is said where it failed.

An expected failure is one line on stderr. Anything else is a bug and leaves as a traceback.
"""

from __future__ import annotations

import os
from collections.abc import Sequence

from sortie.cli.commands import COMPLETE_VARIABLE
from sortie.cli.output import EXIT_FAILURE, complain, ended, tell_problem
from sortie.cli.parameters import WrongUsage
from sortie.cli.plain_words import plain_command
from sortie.model import SortieError, WorkflowError


def run_command(arguments: Sequence[str]) -> int:
    """Run one command and return its exit code; its streams are guarded already."""
    return ended(lambda: _run(list(arguments)))


def _run(arguments: list[str]) -> int:
    try:
        code = _code_of(arguments)
    except WorkflowError as error:
        for problem in error.problems:
            tell_problem(problem)
        complain(f"{_count(error)}; mend what is listed above and try again")
        return EXIT_FAILURE
    except SortieError as error:
        complain(str(error))
        return EXIT_FAILURE
    return code if isinstance(code, int) else 0


def _code_of(arguments: list[str]) -> object:
    command = None if COMPLETE_VARIABLE in os.environ else plain_command(arguments)
    if command is not None:
        try:
            return command()
        except WrongUsage:
            pass  # typer comes to the same end, and knows how mistakes are told
    from sortie.cli.typer_program import run_typer

    return run_typer(arguments)


def _count(error: WorkflowError) -> str:
    errors = [problem for problem in error.problems if problem.severity == "error"]
    return f"{errors[0].path}: {len(errors)} {'error' if len(errors) == 1 else 'errors'}"
