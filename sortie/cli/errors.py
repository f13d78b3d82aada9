"""Run one command: read the line, call the command, and tell what failed.

An expected failure is one line on stderr. Anything else is a bug and leaves as a traceback.
"""

from __future__ import annotations

import os
from collections.abc import Sequence

from sortie.cli.commands import COMMANDS, COMPLETE_VARIABLE
from sortie.cli.completion import answer_shell, completion_script
from sortie.cli.output import EXIT_FAILURE, complain, emit, ended, tell_problem
from sortie.cli.parameters import WrongUsage
from sortie.cli.parser import (
    HelpWanted,
    command_of,
    no_command,
    program_help,
    program_parser,
)
from sortie.cli.version import show_version
from sortie.model import SortieError, WorkflowError

EXIT_USAGE = 2


def run_command(arguments: Sequence[str]) -> int:
    """Run one command and return its exit code; its streams are guarded already."""
    return ended(lambda: _run(arguments))


def _run(arguments: Sequence[str]) -> int:
    try:
        code = _code_of(arguments)
    except HelpWanted as help_:
        emit(str(help_))
        return 0
    except WrongUsage as error:
        command = ["sortie", *arguments[:1]] if _names_command(arguments) else ["sortie"]
        complain(f"{error}; see '{' '.join(command)} --help'")
        return EXIT_USAGE
    except WorkflowError as error:
        for problem in error.problems:
            tell_problem(problem)
        complain(f"{_count(error)}; mend what is listed above and try again")
        return EXIT_FAILURE
    except SortieError as error:
        complain(str(error))
        return EXIT_FAILURE
    return code if isinstance(code, int) else 0


def _code_of(arguments: Sequence[str]) -> object:
    if COMPLETE_VARIABLE in os.environ:
        return answer_shell(os.environ)
    if _names_command(arguments):
        return command_of(arguments)()
    if arguments and not arguments[0].startswith("-"):
        raise no_command(arguments[0])
    try:
        given = program_parser().parse_args(arguments)
    except HelpWanted:
        raise HelpWanted(program_help()) from None
    if given.version:
        show_version()
    elif given.show_completion is not None:
        emit(completion_script(given.show_completion))
    else:
        emit(program_help())
    return 0


def _names_command(arguments: Sequence[str]) -> bool:
    return bool(arguments) and arguments[0] in COMMANDS


def _count(error: WorkflowError) -> str:
    errors = [problem for problem in error.problems if problem.severity == "error"]
    return f"{errors[0].path}: {len(errors)} {'error' if len(errors) == 1 else 'errors'}"
