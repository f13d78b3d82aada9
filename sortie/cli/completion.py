"""Completion in the shell: its script, and what is offered for the word at the cursor.

Rule 1: a completion prints no message and takes ``DAEMON_TIME_LIMIT`` seconds at most, whatever is
wrong: then there is nothing to offer.
"""

from __future__ import annotations

import io
import shlex
from argparse import Action
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import redirect_stderr
from pathlib import Path
from typing import Any

from sortie.cli.arguments import Source
from sortie.cli.commands import COMMANDS, COMPLETE_VARIABLE
from sortie.cli.output import emit, one_line
from sortie.cli.parameters import WrongUsage
from sortie.cli.parser import CommandParser, command_function, command_parser, program_parser
from sortie.model import SortieError

DAEMON_TIME_LIMIT = 1.0
"""Seconds that a person who pressed Tab waits for a daemon's answer."""

_RUNS = 200  # of history, whose issues are offered too
_KINDS = ("running", "waiting", "held", "queued", "blocked")

_SCRIPTS = {
    "bash": """\
_sortie_completion() {
    local IFS=$'\\n'
    COMPREPLY=($(_SORTIE_COMPLETE=complete_bash COMP_CWORD=$COMP_CWORD \\
        COMP_WORDS="${COMP_WORDS[*]}" "$1" 2>/dev/null))
}
complete -o default -F _sortie_completion sortie
""",
    "zsh": """\
#compdef sortie
_sortie_completion() {
    local -a offered
    offered=(${(f)"$(_SORTIE_COMPLETE=complete_zsh COMP_CWORD=$((CURRENT - 1)) \\
        COMP_WORDS="${(j: :)${(@q)words}}" "${words[1]}" 2>/dev/null)"})
    if (( $#offered )); then _describe '' offered; else _files; fi
}
compdef _sortie_completion sortie
""",
    "fish": """\
function __sortie_completion
    set -l before (commandline -opc)
    set -l words (string escape -- $before (commandline -ct) | string join ' ')
    set -l offered (env _SORTIE_COMPLETE=complete_fish COMP_CWORD=(count $before) \\
        COMP_WORDS=$words $before[1] 2>/dev/null)
    if set -q offered[1]
        printf '%s\\n' $offered
    else
        __fish_complete_path (commandline -ct)
    end
end
complete --command sortie --no-files --arguments "(__sortie_completion)"
""",
}

Offer = tuple[str, str]
"""A word that may stand at the cursor, and what it means."""


def completion_script(shell: str) -> str:
    """Return the script by which a shell asks this program for completions."""
    return _SCRIPTS[shell]


def answer_shell(environ: Mapping[str, str]) -> int:
    """Print what is offered for the word at the cursor, as the shell's script takes it."""
    shell = environ.get(COMPLETE_VARIABLE, "").removeprefix("complete_")
    try:
        words = shlex.split(environ.get("COMP_WORDS", ""))
        at = int(environ.get("COMP_CWORD", ""))
    except ValueError:  # a quote is open, or no shell asks
        return 0
    for word, meaning in _offers(words[1:at], (words[at:] or [""])[0]):
        match shell:
            case "zsh":
                emit(f"{word.replace(':', chr(92) + ':')}:{meaning}\n")
            case "fish":
                emit(f"{word}\t{meaning}\n")
            case _:
                emit(f"{word}\n")
    return 0


def _offers(before: Sequence[str], incomplete: str) -> Sequence[Offer]:
    if before and before[0] in COMMANDS:
        parser = command_parser(before[0], command_function(before[0]))
        before = before[1:]
    else:
        parser = program_parser()
    offers = _offers_of(parser, before, incomplete)
    return [(word, meaning) for word, meaning in offers if word.startswith(incomplete)]


def _offers_of(parser: CommandParser, before: Sequence[str], incomplete: str) -> Iterable[Offer]:
    """Return what may follow the words of a command, whether or not it begins as is typed."""
    options = {name: each for each in parser._actions for name in each.option_strings}
    arguments = [each for each in parser._actions if not each.option_strings]
    given: dict[str, str] = {}
    action: Action | None = None
    for word in before:
        if action is not None:
            given[action.dest], action = word, None
        elif word in options:
            action = options[word] if options[word].nargs != 0 else None
        elif not word.startswith("-") and arguments:
            given[arguments.pop(0).dest] = word
    if action is None and incomplete.startswith("-"):
        return [(name, each.help or "") for name, each in options.items()]
    if action is None and arguments:
        action = arguments[0]
    if action is None:
        return ()
    if action.dest == "command":
        return [(name, "") for name in COMMANDS]
    if action.choices is not None:
        return [(str(each), "") for each in action.choices]
    completes = parser.completed.get(action.dest)
    return _NAMES[completes](given) if completes is not None else ()


def _issues(given: Mapping[str, str]) -> Sequence[Offer]:
    """Return names of issues, each with what is done about it."""
    return _found(_source(given), _issues_in_hand, _issues_on_record)


def _hosts(given: Mapping[str, str]) -> Sequence[Offer]:
    """Return the names of SSH hosts, each with how it is where a daemon tells."""
    return _found(_source(given), _hosts_with_daemon, _hosts_of_settings)


def _topics(_given: Mapping[str, str]) -> Sequence[Offer]:
    from sortie.cli.help import topics

    return _found(None, lambda _: ((topic, "") for topic in topics()))


def _found(source: Any, *ways: Callable[[Any], Iterator[Offer]]) -> Sequence[Offer]:
    found: dict[str, str] = {}
    with redirect_stderr(io.StringIO()):
        for offers in ways:
            try:
                for name, meaning in offers(source):
                    found.setdefault(name, meaning)
            except (SortieError, WrongUsage):
                continue
    return sorted(found.items())


def _source(given: Mapping[str, str]) -> Source:
    named, env_file = given.get("argument") or given.get("option"), given.get("env_file")
    return Source(
        argument=Path(named) if named else None, env_file=Path(env_file) if env_file else None
    )


def _hosts_with_daemon(source: Source) -> Iterator[Offer]:
    from sortie.cli.client import ask

    place = _place(source)
    state = ask(place, place.daemon(), "GET", "/api/v1/state", DAEMON_TIME_LIMIT).document
    views: Any = state.get("hosts")
    for view in views if isinstance(views, list) else ():
        if isinstance(view, dict) and isinstance(name := view.get("host"), str):
            yield one_line(name), "up" if view.get("up") else "in trouble"


def _hosts_of_settings(source: Source) -> Iterator[Offer]:
    from sortie.daemon.workflow_file import load_workflow

    for host in load_workflow(source.options()).settings.worker.hosts:
        yield one_line(host), "of worker.ssh_hosts"


def _place(source: Source) -> Any:
    from sortie.cli.discovery import locate

    return locate(source)


def _issues_in_hand(source: Source) -> Iterator[Offer]:
    from sortie.cli.client import ask

    place = _place(source)
    state = ask(place, place.daemon(), "GET", "/api/v1/state", DAEMON_TIME_LIMIT).document
    for kind in _KINDS:
        views: Any = state.get(kind)
        for view in views if isinstance(views, list) else ():
            if isinstance(view, dict) and isinstance(name := view.get("issue_identifier"), str):
                yield one_line(name), kind


def _issues_on_record(source: Source) -> Iterator[Offer]:
    from sortie.store.readonly import is_there, read_history

    place = _place(source)
    if is_there(place.database):
        for row in read_history(place.database, limit=_RUNS):
            yield one_line(row.issue), f"last run {row.status}"


_NAMES = {"issue": _issues, "host": _hosts, "topic": _topics}
"""How each kind of name is completed that a parameter may have."""
