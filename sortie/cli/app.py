"""All commands, under one program."""

from __future__ import annotations

from collections.abc import Callable
from inspect import cleandoc
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

from sortie.cli.arguments import NO_VALUE, grouped
from sortie.cli.completion import ShellName, show_completion
from sortie.cli.demo.command import demo
from sortie.cli.documentation import pages
from sortie.cli.explain import explain
from sortie.cli.history import history
from sortie.cli.init import init
from sortie.cli.operator import pause, refresh, resume, retry, stop
from sortie.cli.render import render
from sortie.cli.run import run
from sortie.cli.schema import schema
from sortie.cli.status import status
from sortie.cli.validate import validate
from sortie.cli.version import show_version, version

PAGES = pages()


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


def _as_flag(option: Any) -> Any:
    if option is not None:
        option.metavar = NO_VALUE
    return option


app = typer.Typer(
    name="sortie",
    cls=_Program,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    add_completion=False,  # its options take no SHELL
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="""Begin with:
  sortie demo --exit-when-idle    see five issues worked on, nothing to set up
  sortie init                     write a WORKFLOW.md of your own
  sortie validate                 find what is wrong with it
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


def _add(command: Callable[..., object], *examples: str) -> None:
    """Add a command under its function's name; its docstring is its help."""
    paragraphs = cleandoc(command.__doc__ or "").split("\n\n")
    app.command(
        cls=_Command,
        name=command.__name__,
        help="\n\n".join(" ".join(paragraph.split()) for paragraph in paragraphs),
        epilog="\n".join(("\nExamples:", *(f"  {example}" for example in examples))),
    )(grouped(command))


_add(
    run,
    "sortie run",
    "sortie run --dry-run --format json",
    "sortie run team/WORKFLOW.md --port 8080 --log-format json",
    "sortie run --exit-when-idle && echo all done",
)
_add(
    validate,
    "sortie validate",
    "sortie validate team/WORKFLOW.md --env-file team/.env",
    "sortie validate --format json | jq '.problems'",
    "git show HEAD:WORKFLOW.md | sortie validate -",
)
_add(init, "sortie init", "sortie init team/WORKFLOW.md")
_add(schema, "sortie schema > WORKFLOW.schema.json")
_add(demo, "sortie demo --exit-when-idle", "sortie demo /tmp/look --port 8080")
_add(
    render,
    "sortie render DEMO-1",
    "sortie render DEMO-1 team/WORKFLOW.md --turn 2",
)
_add(
    history,
    "sortie history --issue DEMO-1",
    "sortie history --limit 500 --format json | jq 'map(.credits) | add'",
)
_add(
    status,
    "sortie status",
    "sortie status --watch",
    "sortie status --format json | jq '.held[].issue_identifier'",
)
_add(explain, "sortie explain DEMO-1", "sortie explain DEMO-1 --format json | jq '.gates'")
_add(refresh, "sortie refresh")
_add(pause, "sortie pause", "sortie pause team/WORKFLOW.md")
_add(resume, "sortie resume")
_add(stop, "sortie stop DEMO-1", "sortie stop 'group/project#7'")
_add(retry, "sortie retry DEMO-1", "sortie retry DEMO-1 --format json")
_add(version, "sortie version", "sortie version --format json")
