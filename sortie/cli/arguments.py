"""The arguments and options that several commands share."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from enum import StrEnum
from functools import wraps
from inspect import Parameter, Signature, signature
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar, get_type_hints

from msgspec import Struct
from msgspec.structs import replace

from sortie.cli.output import Format
from sortie.cli.parameters import WrongUsage, argument, option
from sortie.cli.workflow_names import are_several, named_workflows
from sortie.model import SortieError

if TYPE_CHECKING:
    from sortie.daemon.options import RunOptions

T = TypeVar("T")

DEFAULT_WORKFLOW = Path("WORKFLOW.md")


class NoWorkflowFile(SortieError):
    """There is no workflow file of the name that was given."""


class LogLevel(StrEnum):
    """From which level on there are log lines."""

    DEBUG = "debug"
    INFO = "info"
    WARNING = "warning"
    ERROR = "error"


WorkflowArgument = Annotated[
    Path | None,
    argument(metavar="WORKFLOW.md", help="The workflow file.", default=str(DEFAULT_WORKFLOW)),
]
WorkflowOption = Annotated[
    Path | None,
    option("--workflow", "-w", metavar="WORKFLOW.md", help="The workflow file, named this way."),
]
EnvFile = Annotated[
    Path | None,
    option(
        metavar="FILE", help="Read the SORTIE_* lines of this file; the environment beats them."
    ),
]
Host = Annotated[
    str | None, option(metavar="ADDRESS", help="Listen on this address; beats server.host.")
]
Port = Annotated[
    int | None,
    option(
        least=0,
        most=65535,
        metavar="PORT",
        help="Listen on this port and on no other; 0 is no server. Beats server.port.",
    ),
]
MaxAgents = Annotated[
    int | None,
    option(
        least=1,
        metavar="N",
        help="Runs of all workflows at once; by default the largest max_concurrent_agents.",
    ),
]
Level = Annotated[
    LogLevel | None,
    option(
        metavar="LEVEL",
        help="Log from debug, info, warning or error on; beats logging.level.",
    ),
]
LogFormat = Annotated[
    Format | None, option(help="The form of log lines on stderr; beats logging.format.")
]
Quiet = Annotated[
    bool,
    option(
        "--quiet",
        "-q",
        help="Log warnings and errors only; as --log-level warning.",
    ),
]
Verbose = Annotated[
    bool,
    option("--verbose", "-v", help="Log all there is; as --log-level debug."),
]
ExitWhenIdle = Annotated[
    bool,
    option(
        "--exit-when-idle",
        help="Leave when two polls in a row found nothing to start and nothing runs or waits:"
        " with 0, or with 3 where an issue is held or blocked, or dispatch is paused.",
    ),
]
OutputFormat = Annotated[Format, option("--format", "-f", help="Print for people or for programs.")]
LongFormat = Annotated[Format, option("--format", help="Print for people or for programs.")]
"""The same where ``-f`` is another option's."""


WorkflowArguments = Annotated[
    list[Path] | None,
    argument(
        metavar="WORKFLOW.md",
        help="The workflow file, or several of them, or a directory of them.",
        default=str(DEFAULT_WORKFLOW),
    ),
]


def workflow_of(arguments: Sequence[Path], option: Path | None) -> Path:
    """Return the one workflow file that was named, in either way, or the default one.

    Raises WrongUsage where several were named and none of them is chosen.
    """
    if not are_several(arguments):
        argument = arguments[0] if arguments else None
        if option is not None and argument is None and (found := _named_here(option)) is not None:
            return found
        if argument is not None and option is not None and argument != option:
            raise WrongUsage(
                f"names {option}, and the argument names {argument}; name the workflow file once",
                parameter="--workflow",
            )
        return argument or option or DEFAULT_WORKFLOW
    known = named_workflows(arguments)
    if option is None and len(known) == 1:
        return next(iter(known.values()))
    names = ", ".join(known)
    if option is None:
        raise WrongUsage(f"choose one of the workflows {names}", parameter="--workflow")
    if (chosen := known.get(str(option))) is None:
        raise WrongUsage(f"{option} is none of the workflows {names}", parameter="--workflow")
    return chosen


def _named_here(option: Path) -> Path | None:
    """Return the workflow of this name in this directory, where no file has that name."""
    if os.path.lexists(option) or len(option.parts) != 1:
        return None
    with suppress(SortieError):
        return named_workflows([Path()]).get(str(option))
    return None


class Source(Struct, frozen=True, kw_only=True):
    """The files that settings come from: the workflow file, named in one of two ways, and more."""

    argument: WorkflowArgument = None
    option: WorkflowOption = None
    env_file: EnvFile = None

    def __post_init__(self) -> None:
        if not are_several(self.arguments):
            workflow_of(self.arguments, self.option)

    @property
    def arguments(self) -> Sequence[Path]:
        """Return the files and directories that were named."""
        return () if self.argument is None else (self.argument,)

    @property
    def workflow(self) -> Path:
        """Return the one workflow file. Raises WrongUsage where there are several."""
        return workflow_of(self.arguments, self.option)

    def each(self) -> Mapping[str, Source]:
        """Return a source for each workflow by its name; "" is the name of the only one."""
        if self.option is not None or not are_several(self.arguments):
            return {"": Source(argument=self.workflow, env_file=self.env_file)}
        return {
            name: Source(argument=path, env_file=self.env_file)
            for name, path in named_workflows(self.arguments).items()
        }

    def options(self) -> RunOptions:
        """Return what the parts below need to read them."""
        from sortie.daemon.options import RunOptions

        return RunOptions(workflow=self.workflow, environ=dict(os.environ), env_file=self.env_file)

    def require(self) -> None:
        """Raise NoWorkflowFile with a hint for newcomers where there is no workflow file."""
        try:
            self.workflow.stat()
        except (FileNotFoundError, NotADirectoryError) as error:
            raise NoWorkflowFile(
                f"there is no {self.workflow}; name the workflow file, make one with"
                " 'sortie init', or look at 'sortie demo'"
            ) from error
        except OSError:
            pass  # reading it says what is wrong


class Sources(Source, frozen=True, kw_only=True):
    """The files of one workflow or of several."""

    argument: WorkflowArguments = None  # type: ignore[assignment]

    @property
    def arguments(self) -> Sequence[Path]:
        """Return the files and directories that were named."""
        return tuple(self.argument or ())


class DaemonFlags(Struct, frozen=True, kw_only=True):
    """What a command line says to a daemon, beside its files."""

    host: Host = None
    port: Port = None
    log_level: Level = None
    log_format: LogFormat = None
    quiet: Quiet = False
    verbose: Verbose = False
    exit_when_idle: ExitWhenIdle = False

    def over(self, options: RunOptions) -> RunOptions:
        """Return options with what is said here."""
        return replace(
            options,
            host=self.host,
            port=self.port,
            log_level=self._level(),
            log_format=self.log_format.value if self.log_format else None,
            exit_when_idle=self.exit_when_idle,
        )

    def _level(self) -> str | None:
        """Return the level that was asked for, None where none was; once is enough."""
        asked = [self.log_level] if self.log_level is not None else []
        asked += [LogLevel.WARNING] if self.quiet else []
        asked += [LogLevel.DEBUG] if self.verbose else []
        if len(asked) > 1:
            raise WrongUsage(
                "takes one of --quiet, --verbose and --log-level", parameter="--log-level"
            )
        return asked[0].value if asked else None


def grouped(command: Callable[..., T]) -> Callable[..., T]:
    """Return a command that takes the fields of its parameters that are dataclasses, one by one.

    So a list of options that several commands share is written once, as a class.
    """
    groups: dict[str, dict[str, Parameter]] = {}
    parameters: dict[str, Parameter] = {}
    hints = get_type_hints(command, include_extras=True)
    for parameter in signature(command).parameters.values():
        hint = hints[parameter.name]
        if isinstance(hint, type) and issubclass(hint, Struct):
            inner = get_type_hints(hint, include_extras=True)
            groups[parameter.name] = {
                name: Parameter(
                    name, Parameter.KEYWORD_ONLY, default=default, annotation=inner[name]
                )
                for name, default in zip(
                    hint.__struct_fields__, hint.__struct_defaults__, strict=True
                )
            }
            parameters |= groups[parameter.name]
        else:
            parameters[parameter.name] = parameter.replace(
                kind=Parameter.KEYWORD_ONLY, annotation=hint
            )

    @wraps(command)
    def spread(**given: Any) -> T:
        made = {
            name: hints[name](**{field: given.pop(field) for field in group})
            for name, group in groups.items()
        }
        return command(**given, **made)

    spread.__signature__ = Signature([*parameters.values()])  # type: ignore[attr-defined]
    return spread
