"""The command line of the simulator: which command, its input, its exit status."""

from __future__ import annotations

import os
import re
import signal
import sys
import time
from argparse import ArgumentParser, Namespace
from collections.abc import Mapping, Sequence
from io import RawIOBase

from sortie import __version__
from sortie.kiro.simulator.actions import ActionError, Log
from sortie.kiro.simulator.console import Console
from sortie.kiro.simulator.directives import DirectiveError, describe, read_directives
from sortie.kiro.simulator.exchange import SimulatedStoreError
from sortie.kiro.simulator.turn import SimulatedTurn, key_is_bad

VERSION_LINE = f"sortie-kiro-sim {__version__} (a simulator, not kiro-cli)"

_HELP = f"""{VERSION_LINE}
Stands in for kiro-cli: same command line, output, exit codes and conversation store; no model.

Usage: sortie-kiro-sim chat --no-interactive [OPTIONS] [PROMPT]
       sortie-kiro-sim whoami
       sortie-kiro-sim --version

Options of chat, as kiro-cli has them: --no-interactive  --wrap always|never|auto  -r, --resume
  --resume-id ID  --model M  --agent A  -a, --trust-all-tools  --trust-tools=A,B
  --require-mcp-startup  -v, --verbose
Without PROMPT, and with --no-interactive, all of stdin is the prompt.
KIRO_API_KEY: any value will do; "invalid" and values that begin with "bad" are refused, and without
one chat waits for a device login for ever.
The note of each turn goes to SORTIE_DEMO.md in the current directory. Conversations go to
$XDG_DATA_HOME/kiro-cli/data.sqlite3 (or below ~/.local/share), unless a real Kiro made that file.

Directives stand on lines "sim: NAME=VALUE ..." of the prompt or in the environment as
KIRO_SIM_NAME=VALUE, which wins. Quote a value that holds NAME=. An unknown one exits with 2.
{describe()}

Example: sortie-kiro-sim chat --no-interactive --trust-tools= "$(printf 'Hello\\nsim: exit=1')"
"""
_SESSION_ID = re.compile(r"[A-Za-z0-9_-]{1,200}")


class UsageError(Exception):
    """The command line is not one that kiro-cli accepts."""


class _ChatParser(ArgumentParser):
    def error(self, message):  # type: ignore[no-untyped-def]  # typing.NoReturn costs start-up time
        raise UsageError(message)


def parse_chat(arguments: Sequence[str]) -> Namespace:
    """Return what follows ``chat``. Raises UsageError."""
    parser = _ChatParser(add_help=False, allow_abbrev=False)
    switches = ("--no-interactive", "--require-mcp-startup")
    for names in (("--help", "-h"), ("--trust-all-tools", "-a"), *((name,) for name in switches)):
        parser.add_argument(*names, action="store_true")
    parser.add_argument("--verbose", "-v", action="count", default=0)
    parser.add_argument("--wrap", choices=("always", "never", "auto"))
    for name in ("--model", "--agent", "--trust-tools"):
        parser.add_argument(name)
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--resume", "-r", action="store_true")
    which.add_argument("--resume-id")
    parser.add_argument("prompt", nargs="?")
    chat = parser.parse_args(arguments)
    if chat.resume_id is not None and not _SESSION_ID.fullmatch(chat.resume_id):
        raise UsageError(f"invalid value '{chat.resume_id}' for '--resume-id': it is no session id")
    return chat


def main() -> None:
    """Run this process's command line; SIGINT, SIGTERM and SIGPIPE kill it, as they kill Kiro."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    for descriptor in range(3):
        _open_on_nothing_if_missing(descriptor)
    # Unbuffered: a buffer that could not be written would fail a second time at exit.
    with (
        open(0, "rb", buffering=0, closefd=False) as stdin,
        open(1, "wb", buffering=0, closefd=False) as out,
        open(2, "wb", buffering=0, closefd=False) as err,
    ):
        sys.exit(run(sys.argv[1:], os.environ, stdin, Console(out, err)))


def _open_on_nothing_if_missing(descriptor: int) -> None:
    try:
        os.fstat(descriptor)
    except OSError:
        os.dup2(os.open(os.devnull, os.O_RDWR), descriptor)


def run(
    arguments: Sequence[str],
    environment: Mapping[str, str],
    stdin: RawIOBase,
    console: Console,
) -> int:
    """Run one command and return its exit status."""
    try:
        match list(arguments):
            case ["--version" | "-V" | "version"]:
                console.print(f"{VERSION_LINE}\n".encode())
                return 0
            case ["--help" | "-h" | "help"]:
                return _help(console)
            case ["whoami"]:
                return _whoami(environment, console)
            case ["whoami", extra, *_]:
                raise UsageError(f"unexpected argument '{extra}' found")
            case ["chat", *rest]:
                return _chat(parse_chat(rest), environment, stdin, console)
            case ["login" | "logout" | "mcp" | "agent" | "settings" | "acp" as command, *_]:
                raise UsageError(f"the simulator has no '{command}'")
            case [other, *_]:
                raise UsageError(f"unrecognized subcommand '{other}'")
            case _:
                raise UsageError("a subcommand is required: chat or whoami")
    except UsageError as error:
        console.complain(f"error: {error}\n\nFor more information, try '--help'.")
        return 2
    except DirectiveError as error:
        console.complain(f"error: simulator directive: {error}")
        return 2
    except (ActionError, SimulatedStoreError, OSError) as error:
        console.complain(f"error: {error}")
        return 1


def _whoami(environment: Mapping[str, str], console: Console) -> int:
    """Confirm the key; the two kinds of bad key fail as two versions of Kiro do."""
    directives = read_directives("", environment)
    log = Log(directives.log, "whoami", environment)
    log.write("start")
    time.sleep(directives.whoami_delay)
    key = environment.get("KIRO_API_KEY", "").strip()
    status = 0
    if directives.login:
        console.print(b"Logged in with Builder ID\n")
    elif not key:
        console.complain("Not logged in")
        status = 1
    elif key_is_bad(key):
        console.bad_key()
        status = 0 if key == "invalid" else 1
    else:
        console.print(b"\x1b[32mAuthenticated with API key\x1b[0m\n")
    log.write("stop", status=status)
    return status


def _chat(
    chat: Namespace, environment: Mapping[str, str], stdin: RawIOBase, console: Console
) -> int:
    if chat.help:
        return _help(console)
    if not chat.no_interactive:
        console.complain("error: the simulator has no interactive mode; use --no-interactive")
        return 1
    prompt = _prompt(chat, stdin)
    if not prompt:
        console.complain("error: Input must be supplied when running in non-interactive mode")
        return 1
    directives = read_directives(prompt, environment)
    if directives.ignore_sigterm:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    log = Log(directives.log, "chat", environment)
    log.write("start", resume=chat.resume, model=chat.model, prompt_bytes=len(prompt.encode()))
    status = SimulatedTurn(chat, prompt, directives, environment).run(console, log)
    log.write("stop", status=status)
    return status


def _prompt(chat: Namespace, stdin: RawIOBase) -> str:
    """Return the prompt; stdin is read only where no prompt was given and it is no terminal."""
    if chat.prompt is not None:
        return os.fsencode(chat.prompt).decode(errors="replace")
    if stdin.isatty():
        return ""
    return stdin.readall().decode(errors="replace").strip()


def _help(console: Console) -> int:
    console.print(_HELP.encode())
    return 0
