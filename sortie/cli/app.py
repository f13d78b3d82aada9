"""All commands, under one program."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import import_module
from inspect import cleandoc
from typing import Annotated, Any, Literal

import typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_command

from sortie.cli.arguments import NO_VALUE, grouped
from sortie.cli.completion import ShellName, show_completion
from sortie.cli.documentation import pages
from sortie.cli.version_line import show_version

PAGES = pages()
_MARKUP: Literal["rich"] = "rich"


COMMANDS: Mapping[str, Sequence[str]] = {
    "run": (
        "sortie.cli.run",
        "sortie run",
        "sortie run --dry-run --format json",
        "sortie run team/WORKFLOW.md --port 8080 --log-format json",
        "sortie run --exit-when-idle && echo all done",
    ),
    "validate": (
        "sortie.cli.validate",
        "sortie validate",
        "sortie validate team/WORKFLOW.md --env-file team/.env",
        "sortie validate --format json | jq '.problems'",
        "git show HEAD:WORKFLOW.md | sortie validate -",
    ),
    "doctor": (
        "sortie.cli.doctor",
        "sortie doctor",
        "sortie doctor team/WORKFLOW.md --env-file team/.env",
        "sortie doctor --host build-1",
        "sortie doctor --format json | jq '.checks[] | select(.outcome == \"failed\")'",
    ),
    "init": (
        "sortie.cli.init",
        "sortie init",
        "sortie init team/WORKFLOW.md",
    ),
    "schema": (
        "sortie.cli.schema",
        "sortie schema > WORKFLOW.schema.json",
    ),
    "demo": (
        "sortie.cli.demo.command",
        "sortie demo --exit-when-idle",
        "sortie demo /tmp/look --port 8080",
        "sortie demo --agent claude-code",
        "sortie demo --agent acp --agent-command 'gemini --acp'",
    ),
    "render": (
        "sortie.cli.render",
        "sortie render DEMO-1",
        "sortie render DEMO-1 team/WORKFLOW.md --turn 2",
    ),
    "history": (
        "sortie.cli.history",
        "sortie history --issue DEMO-1",
        "sortie history --limit 500 --format json | jq 'map(.credits) | add'",
    ),
    "logs": (
        "sortie.cli.logs",
        "sortie logs DEMO-1",
        "sortie logs DEMO-1 --follow",
        "sortie logs DEMO-1 --run 3d999c5f-b746-551b-bada-8e7cd0e666ac --format json",
    ),
    "stats": (
        "sortie.cli.stats",
        "sortie stats",
        "sortie stats --days 30 --format json | jq 'map(.cost_usd) | add'",
    ),
    "status": (
        "sortie.cli.status",
        "sortie status",
        "sortie status --watch",
        "sortie status --format json | jq '.held[].issue_identifier'",
    ),
    "explain": (
        "sortie.cli.explain",
        "sortie explain DEMO-1",
        "sortie explain DEMO-1 --format json | jq '.gates'",
    ),
    "open": (
        "sortie.cli.open",
        "sortie open",
        "sortie open --print",
        "sortie open --format json | jq -r '.url'",
    ),
    "refresh": (
        "sortie.cli.operator",
        "sortie refresh",
    ),
    "pause": (
        "sortie.cli.operator",
        "sortie pause",
        "sortie pause team/WORKFLOW.md",
    ),
    "resume": (
        "sortie.cli.operator",
        "sortie resume",
    ),
    "stop": (
        "sortie.cli.operator",
        "sortie stop DEMO-1",
        "sortie stop 'group/project#7'",
    ),
    "retry": (
        "sortie.cli.operator",
        "sortie retry DEMO-1",
        "sortie retry DEMO-1 --format json",
    ),
    "service": (
        "sortie.cli.service.command",
        "sortie service install",
        "sortie service install team/WORKFLOW.md --dry-run",
        "sudo sortie service install /srv/sortie/WORKFLOW.md --system --run-as sortie",
        "sortie service uninstall",
    ),
    "help": (
        "sortie.cli.help",
        "sortie help",
        "sortie help operating | less",
        "sortie help trackers/github",
        "sortie help run",
    ),
    "version": (
        "sortie.cli.version",
        "sortie version",
        "sortie version --format json",
    ),
}
"""The commands by name, in the order of the help: the module of each, and how it is used.

The module is imported when the command is asked for.
"""


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
    )(grouped(function))
    return get_command(alone)


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
