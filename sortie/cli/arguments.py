"""The arguments and options that several commands share."""

from __future__ import annotations

import os
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sortie.cli.output import Format
from sortie.model import SortieError

if TYPE_CHECKING:
    from sortie.daemon.options import RunOptions

DEFAULT_WORKFLOW = Path("WORKFLOW.md")
NO_VALUE = ""
"""The metavar of a flag, which takes no value."""


class LogLevel(StrEnum):
    """From which level on there are log lines."""

    DEBUG = "debug"
    INFO = "info"
    WARNING = "warning"
    ERROR = "error"


WorkflowArgument = Annotated[
    Path | None,
    typer.Argument(
        metavar="WORKFLOW.md", help="The workflow file.", show_default=str(DEFAULT_WORKFLOW)
    ),
]
WorkflowOption = Annotated[
    Path | None,
    typer.Option(
        "--workflow", "-w", metavar="WORKFLOW.md", help="The workflow file, named this way."
    ),
]
EnvFile = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE", help="Read the SORTIE_* lines of this file; the environment beats them."
    ),
]
Host = Annotated[
    str | None, typer.Option(metavar="ADDRESS", help="Listen on this address; beats server.host.")
]
Port = Annotated[
    int | None,
    typer.Option(
        min=0,
        max=65535,
        metavar="PORT",
        help="Listen on this port and on no other; 0 is no server. Beats server.port.",
    ),
]
Level = Annotated[
    LogLevel | None,
    typer.Option(
        metavar="LEVEL",
        help="Log from debug, info, warning or error on; beats logging.level.",
    ),
]
LogFormat = Annotated[
    Format | None, typer.Option(help="The form of log lines on stderr; beats logging.format.")
]
Quiet = Annotated[
    bool,
    typer.Option(
        "--quiet",
        "-q",
        metavar=NO_VALUE,
        help="Log warnings and errors only; as --log-level warning.",
    ),
]
Verbose = Annotated[
    bool,
    typer.Option(
        "--verbose", "-v", metavar=NO_VALUE, help="Log all there is; as --log-level debug."
    ),
]
ExitWhenIdle = Annotated[
    bool,
    typer.Option(
        "--exit-when-idle",
        metavar=NO_VALUE,
        help="Leave when two polls in a row found nothing to start and nothing runs or waits:"
        " with 0, or with 3 where an issue is held or blocked, or dispatch is paused.",
    ),
]
OutputFormat = Annotated[
    Format, typer.Option("--format", "-f", help="Print for people or for programs.")
]


def level_of(level: LogLevel | None, *, quiet: bool, verbose: bool) -> str | None:
    """Return the level that was asked for, None where none was; once is enough."""
    asked = [level] if level is not None else []
    asked += [LogLevel.WARNING] if quiet else []
    asked += [LogLevel.DEBUG] if verbose else []
    if len(asked) > 1:
        raise typer.BadParameter(
            "takes one of --quiet, --verbose and --log-level", param_hint="--log-level"
        )
    return word(asked[0]) if asked else None


def word(choice: StrEnum | None) -> str | None:
    """Return the plain word that was chosen, None where none was."""
    return None if choice is None else choice.value


def workflow_of(argument: Path | None, option: Path | None) -> Path:
    """Return the workflow file that was named, in either way, or the default one."""
    if argument is not None and option is not None and argument != option:
        raise typer.BadParameter(
            f"names {option}, and the argument names {argument}; name the workflow file once",
            param_hint="--workflow",
        )
    return argument or option or DEFAULT_WORKFLOW


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """The files that settings come from."""

    workflow: Path
    env_file: Path | None = None

    @classmethod
    def named(cls, argument: Path | None, option: Path | None, env_file: Path | None) -> Source:
        """Return the files that a command line names."""
        return cls(workflow=workflow_of(argument, option), env_file=env_file)

    def options(self) -> RunOptions:
        """Return what the parts below need to read them."""
        from sortie.daemon.options import RunOptions

        return RunOptions(workflow=self.workflow, environ=dict(os.environ), env_file=self.env_file)

    def require(self) -> None:
        """Raise SortieError with a hint for newcomers where there is no workflow file."""
        try:
            self.workflow.stat()
        except (FileNotFoundError, NotADirectoryError) as error:
            raise SortieError(
                f"there is no {self.workflow}; name the workflow file, make one with"
                " 'sortie init', or look at 'sortie demo'"
            ) from error
        except OSError:
            pass  # reading it says what is wrong
