"""The command line: argparse parsers, made of what commands declare of their parameters.

Only the module of the command that is asked for is imported; the program's own help imports all.
"""

from __future__ import annotations

import shutil
import textwrap
from argparse import (
    SUPPRESS,
    Action,
    ArgumentParser,
    ArgumentTypeError,
    RawDescriptionHelpFormatter,
)
from collections.abc import Callable, Sequence
from difflib import get_close_matches
from enum import StrEnum
from importlib import import_module
from inspect import Parameter, cleandoc, signature
from keyword import iskeyword
from types import NoneType
from typing import Any, NoReturn, get_args

from sortie.cli.arguments import grouped
from sortie.cli.commands import COMMANDS
from sortie.cli.documentation import pages
from sortie.cli.parameters import Completed, Declaration, WrongUsage

SHELLS = ("bash", "zsh", "fish")
_BEGIN = """Begin with:
  sortie demo --exit-when-idle    see five issues worked on, nothing to set up
  sortie init                     write a WORKFLOW.md of your own
  sortie validate                 find what is wrong with it
  sortie doctor                   see what else is missing, and what to do
  sortie run --dry-run            see what would be started
  sortie run                      start the daemon
  sortie status                   see what it does

Exit codes: 0 all is well, 1 failure, 2 wrong usage, 3 idle with issues left,
70 ended by the daemon's watchdog, 130 cut short."""


class HelpWanted(Exception):
    """Help was asked for; the text is it."""


class _Formatter(RawDescriptionHelpFormatter):
    """Help whose options are shown as ``-f, --format FORMAT``."""

    def __init__(self, prog: str) -> None:
        super().__init__(prog, max_help_position=28, width=_width())

    def add_usage(
        self, usage: Any, actions: Any, groups: Any, prefix: str | None = "Usage: "
    ) -> None:
        """Add the line that says how the command is used."""
        super().add_usage(usage, actions, groups, prefix or "Usage: ")

    def _format_action_invocation(self, action: Action) -> str:
        if not action.option_strings or action.nargs == 0:
            return super()._format_action_invocation(action)
        metavar = self._format_args(action, self._get_default_metavar_for_optional(action))
        return f"{', '.join(action.option_strings)} {metavar}"


class CommandParser(ArgumentParser):
    """A parser that raises WrongUsage and HelpWanted, and knows what names may be completed."""

    def __init__(self, prog: str, usage: str, description: str, epilog: str) -> None:
        super().__init__(
            prog=prog,
            usage=f"{prog} {usage}".replace("%", "%%"),
            description=description,
            epilog=epilog,
            formatter_class=_Formatter,
            allow_abbrev=False,
            add_help=False,
        )
        self.completed: dict[str, Completed | None] = {}
        self.arguments = self.add_argument_group("Arguments")
        self.options = self.add_argument_group("Options")

    def add_help_option(self) -> None:
        """Add the option ``--help``, which is the last one."""
        self.options.add_argument(
            "-h",
            "--help",
            action=_ShowHelp,
            nargs=0,
            dest=SUPPRESS,
            default=SUPPRESS,
            help="Show this help and exit.",
        )

    def error(self, message: str) -> NoReturn:
        """Raise WrongUsage."""
        raise WrongUsage(message.replace("%%", "%"))


class _ShowHelp(Action):
    def __call__(self, parser: ArgumentParser, *_: Any) -> None:
        raise HelpWanted(parser.format_help())


def command_of(words: Sequence[str]) -> Callable[[], object]:
    """Return the command that a line asks for, ready to be called.

    Raises HelpWanted where help is asked for, and WrongUsage.
    """
    name, *rest = words
    function = command_function(name)
    given = vars(command_parser(name, function).parse_intermixed_args(rest))
    kinds = {each.name: _type_of(each) for each in signature(function).parameters.values()}
    values = {key: _typed(kinds[key], value) for key, value in given.items()}
    return lambda: function(**values)


def command_function(name: str) -> Callable[..., object]:
    """Import a command; its parameters are arguments and options."""
    module, *_ = COMMANDS[name]
    return grouped(getattr(import_module(module), f"{name}_" if iskeyword(name) else name))


def command_parser(name: str, function: Callable[..., object]) -> CommandParser:
    """Return a command's parser; the docstring of its function is its help."""
    parameters = [(each, _declaration(each)) for each in signature(function).parameters.values()]
    usage = ["[OPTIONS]"]
    for each, declared in parameters:
        if declared.names is None:
            metavar = _metavar(each, declared)
            metavar += " ..." if _is_list(each) else ""
            usage.append(metavar if each.default is Parameter.empty else f"[{metavar}]")
    paragraphs = cleandoc(function.__doc__ or "").split("\n\n")
    _, *examples = COMMANDS[name]
    parser = CommandParser(
        f"sortie {name}",
        " ".join(usage),
        "\n\n".join(textwrap.fill(" ".join(each.split()), _width()) for each in paragraphs),
        "\n".join(("Examples:", *(f"  {example}" for example in examples))),
    )
    for each, declared in parameters:
        _add(parser, each, declared)
    parser.add_help_option()
    return parser


def program_parser() -> CommandParser:
    """Return the parser of a line that names no command."""
    documentation = pages()
    parser = CommandParser(
        "sortie",
        "[OPTIONS] COMMAND [ARGUMENTS]",
        "Turn the issues of a tracker into runs of a coding agent.",
        _BEGIN + (f"\n\nDocumentation: {documentation}" if documentation else ""),
    )
    parser.add_argument("command", nargs="?", help=SUPPRESS)
    parser.options.add_argument(
        "-V", "--version", action="store_true", help="Show the version and exit."
    )
    parser.options.add_argument(
        "--show-completion",
        metavar="SHELL",
        choices=SHELLS,
        help="Print the completion for bash, zsh or fish and exit.",
    )
    parser.add_help_option()
    return parser


def program_help() -> str:
    """Return the program's help, with a line for each command."""
    before, options, after = program_parser().format_help().partition("Options:")
    lines, width = ["Commands:"], 1 + max(map(len, COMMANDS))
    for name in COMMANDS:
        doc = cleandoc(command_function(name).__doc__ or "")
        lines += textwrap.wrap(
            " ".join(doc.split("\n\n")[0].split()),
            _width(),
            initial_indent=f"  {name:{width}}",
            subsequent_indent=" " * (2 + width),
        )
    return f"{before}{chr(10).join(lines)}\n\n{options}{after}"


def no_command(name: str) -> WrongUsage:
    """Return the error that there is no command of this name, with those like it."""
    near = get_close_matches(name, COMMANDS, n=3)
    hint = f", did you mean {' or '.join(near)}?" if near else ""
    return WrongUsage(f"there is no command {name!r}{hint}")


def _add(parser: CommandParser, parameter: Parameter, declared: Declaration) -> None:
    kind = _type_of(parameter)
    is_required = parameter.default is Parameter.empty
    more: dict[str, Any] = {"help": _help(parameter, declared).replace("%", "%%")}
    parser.completed[parameter.name] = declared.completes
    if declared.names is None:
        if not is_required:
            nargs = "*" if _is_list(parameter) else "?"
            more |= {"nargs": nargs, "default": parameter.default}
        group = parser.arguments
        names: tuple[str, ...] = (parameter.name,)
    else:
        given = declared.names or (f"--{parameter.name.replace('_', '-')}",)
        names = tuple(sorted(given, key=len))
        more |= {"dest": parameter.name, "default": parameter.default}
        group = parser.options
    if kind is bool:
        more["action"] = "store_true"
    else:
        more |= {"type": _reader(kind, declared), "metavar": _metavar(parameter, declared)}
    if _is_list(parameter) and declared.names is not None:
        more["action"] = "append"
    if issubclass(kind, StrEnum):
        more["choices"] = [each.value for each in kind]
    group.add_argument(*names, **more)


def _help(parameter: Parameter, declared: Declaration) -> str:
    default = declared.default
    if default is None and parameter.default not in (None, False, Parameter.empty):
        default = str(parameter.default)
    return f"{declared.help} [default: {default}]" if default else declared.help


def _metavar(parameter: Parameter, declared: Declaration) -> str:
    kind = _type_of(parameter)
    if declared.metavar is None and issubclass(kind, StrEnum):
        return "|".join(kind)
    return declared.metavar or parameter.name.upper()


def _reader(kind: type, declared: Declaration) -> Callable[[str], object]:
    if declared.check is not None:
        return declared.check
    if kind is not int:
        return str

    def number(text: str) -> int:
        least, most = declared.least, declared.most
        try:
            value = int(text)
        except ValueError:
            raise ArgumentTypeError(f"{text!r} is no whole number") from None
        if (least is not None and value < least) or (most is not None and value > most):
            raise ArgumentTypeError(f"{value} is not from {least} to {most}")
        return value

    return number


def _typed(kind: type, value: Any) -> object:
    if isinstance(value, list):
        return [_typed(kind, item) for item in value]
    return kind(value) if isinstance(value, str) and not isinstance(value, kind) else value


def _declaration(parameter: Parameter) -> Declaration:
    return next(each for each in get_args(parameter.annotation) if isinstance(each, Declaration))


def _kinds(parameter: Parameter) -> Sequence[Any]:
    annotated = get_args(parameter.annotation)[0]
    return [kind for kind in get_args(annotated) or (annotated,) if kind is not NoneType]


def _is_list(parameter: Parameter) -> bool:
    return any(getattr(kind, "__origin__", None) is list for kind in _kinds(parameter))


def _type_of(parameter: Parameter) -> type:
    """Return the type of a parameter's value, or of the items of a list, without None."""
    (kind,) = _kinds(parameter)
    found: type = get_args(kind)[0] if _is_list(parameter) else kind
    return found


def _width() -> int:
    return min(shutil.get_terminal_size().columns, 100) - 2
