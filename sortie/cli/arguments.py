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

_WORKFLOW_HELP = "The workflow file."


class LogLevel(StrEnum):
    """From which level on there are log lines."""

    DEBUG = "debug"
    INFO = "info"
    WARNING = "warning"
    ERROR = "error"


WorkflowArgument = Annotated[Path, typer.Argument(metavar="WORKFLOW.md", help=_WORKFLOW_HELP)]
WorkflowOption = Annotated[
    Path, typer.Option("--workflow", "-w", metavar="WORKFLOW.md", help=_WORKFLOW_HELP)
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
Level = Annotated[LogLevel | None, typer.Option(help="How much to log; beats logging.level.")]
LogFormat = Annotated[
    Format | None, typer.Option(help="The form of log lines on stderr; beats logging.format.")
]
ExitWhenIdle = Annotated[
    bool,
    typer.Option(
        "--exit-when-idle",
        help="Leave when two polls in a row found nothing to start and nothing runs or waits:"
        " with 0, or with 3 where an issue is held or blocked, or dispatch is paused.",
    ),
]
OutputFormat = Annotated[
    Format, typer.Option("--format", "-f", help="Print for people or for programs.")
]


def word(choice: StrEnum | None) -> str | None:
    """Return the plain word that was chosen, None where none was."""
    return None if choice is None else choice.value


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """The files that settings come from."""

    workflow: Path
    env_file: Path | None = None

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
