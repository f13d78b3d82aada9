"""All commands, under one program, as typer takes them.

It reads what is not plain, finds mistakes, shows help and answers shells that complete a line.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from importlib import import_module
from inspect import Parameter, cleandoc, signature
from typing import Annotated, Any, Literal, get_args

import typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_command

from sortie.cli.arguments import NO_VALUE, grouped
from sortie.cli.commands import COMMANDS
from sortie.cli.completion import COMPLETIONS, ShellName, show_completion
from sortie.cli.documentation import pages
from sortie.cli.parameters import Declaration, WrongUsage
from sortie.cli.version_line import show_version

PAGES = pages()
_MARKUP: Literal["rich"] = "rich"


class _Command(TyperCommand):
    """A command whose ``--help`` is shown as the flag that it is."""

    def get_help_option(self, ctx: Any) -> Any:
        """Return the option ``--help``."""
        return _as_flag(super().get_help_option(ctx))


class _Program(TyperGroup):
    """All commands; its own ``--help`` is shown as theirs are."""

    def get_help_option(self, ctx: Any) -> Any:
        """Return the option ``--help``."""
        return _as_flag(super().get_help_option(ctx))

    def list_commands(self, _ctx: Any) -> list[str]:
        """Return the names of all commands."""
        return list(COMMANDS)

    def get_command(self, _ctx: Any, cmd_name: str) -> Any:
        """Return a command, None where there is none of that name."""
        if cmd_name in COMMANDS and cmd_name not in self.commands:
            self.add_command(_imported(cmd_name))
        return self.commands.get(cmd_name)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Return the command that is asked for; where there is none, typer names those like it."""
        if args[0] not in COMMANDS:
            for name in COMMANDS:
                self.get_command(ctx, name)
        return super().resolve_command(ctx, args)


def _imported(name: str) -> Any:
    """Return a command; the docstring of its function is its help."""
    module, *examples = COMMANDS[name]
    function = getattr(import_module(module), name)
    paragraphs = cleandoc(function.__doc__ or "").split("\n\n")
    alone = typer.Typer(
        rich_markup_mode=_MARKUP, pretty_exceptions_enable=False, add_completion=False
    )
    alone.command(
        cls=_Command,
        name=name,
        help="\n\n".join(" ".join(paragraph.split()) for paragraph in paragraphs),
        epilog="\n".join(("\nExamples:", *(f"  {example}" for example in examples))),
    )(_for_typer(grouped(function)))
    return get_command(alone)


def _for_typer(command: Callable[..., Any]) -> Callable[..., Any]:
    """Return a command with what it declares of its parameters in typer's words."""
    given = signature(command)
    parameters = [_parameter(each) for each in given.parameters.values()]
    told = _with_typers_errors(command)
    told.__signature__ = given.replace(parameters=parameters)  # type: ignore[attr-defined]
    return told


def _parameter(parameter: Parameter) -> Parameter:
    kind, *others = get_args(parameter.annotation)
    told = [_info(each) if isinstance(each, Declaration) else each for each in others]
    return parameter.replace(annotation=Annotated[kind, *told])


def _info(declared: Declaration) -> Any:
    more = dict(declared.more)
    if "completes" in more:
        more["autocompletion"] = COMPLETIONS[more.pop("completes")]
    if "callback" in more:
        more["callback"] = _with_typers_errors(more["callback"])
    if declared.kind == "argument":
        return typer.Argument(**more)
    return typer.Option(*declared.names, **more)


def _with_typers_errors(function: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(function)
    def translated(*positional: Any, **named: Any) -> Any:
        try:
            return function(*positional, **named)
        except WrongUsage as error:
            raise typer.BadParameter(str(error), param_hint=error.parameter) from error

    return translated


def _as_flag(option: Any) -> Any:
    if option is not None:
        option.metavar = NO_VALUE
    return option


app = typer.Typer(
    name="sortie",
    cls=_Program,
    rich_markup_mode=_MARKUP,
    pretty_exceptions_enable=False,
    add_completion=False,  # its options take no SHELL
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="""Begin with:
  sortie demo --exit-when-idle    see five issues worked on, nothing to set up
  sortie init                     write a WORKFLOW.md of your own
  sortie validate                 find what is wrong with it
  sortie doctor                   see what else is missing, and what to do
  sortie run --dry-run            see what would be started
  sortie run                      start the daemon
  sortie status                   see what it does

Exit codes: 0 all is well, 1 failure, 2 wrong usage, 3 idle with issues left,
70 ended by the daemon's watchdog, 130 cut short."""
    + (f"\n\nDocumentation: {PAGES}" if PAGES else ""),
)


@app.callback(invoke_without_command=True)
def sortie(
    context: typer.Context,
    show: Annotated[
        bool,
        typer.Option(
            "--version", "-V", metavar=NO_VALUE, help="Show the version and exit.", is_eager=True
        ),
    ] = False,
    completion: Annotated[
        ShellName | None,
        typer.Option(
            "--show-completion",
            metavar="SHELL",
            help="Print the completion for bash, zsh or fish and exit.",
        ),
    ] = None,
) -> int:
    """Turn the issues of a tracker into runs of a coding agent."""
    if show:
        show_version()
        raise typer.Exit
    if completion is not None:
        show_completion(completion)
        raise typer.Exit
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())
    return 0
