"""The command line of the simulator: which command, its input, its exit status."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Mapping, Sequence

from sortie import __version__
from sortie.kiro.simulator.actions import ActionError, Log
from sortie.kiro.simulator.arguments import Acp, Chat, UsageError, parse_acp, parse_chat
from sortie.kiro.simulator.chat import Turn, key_is_bad
from sortie.kiro.simulator.console import Console
from sortie.kiro.simulator.directives import DirectiveError, describe, read_directives
from sortie.kiro.simulator.keeping import StoreTrouble

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import BinaryIO

VERSION = f"sortie-kiro-sim {__version__} (a simulator, not kiro-cli)"

_HELP = f"""{VERSION}
Stands in for kiro-cli: same command line, output, exit codes and conversation store; no model.

Usage: sortie-kiro-sim chat --no-interactive [OPTIONS] [PROMPT]
       sortie-kiro-sim acp [OPTIONS]
       sortie-kiro-sim whoami
       sortie-kiro-sim --version

Options of chat, as kiro-cli has them: --no-interactive  --wrap always|never|auto  -r, --resume
  --model M  --agent A  -a, --trust-all-tools  --trust-tools=A,B  --require-mcp-startup
  -v, --verbose  --resume-id ID  --list-sessions [-f, --format plain|json]
  --delete-session ID [--session-source v1|v2]
Options of acp, which speaks the Agent Client Protocol: --agent-engine v2|v3, and with v2 --model M
  --agent A  -a, --trust-all-tools  --trust-tools=A,B, with v3 --auth-method cli
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


def main() -> None:
    """Run this process's command line; SIGINT, SIGTERM and SIGPIPE kill it, as they kill Kiro."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    for descriptor in range(3):
        _open_on_nothing_if_missing(descriptor)
    # Without a buffer nothing is left of what could not be written, to fail again at the end.
    with (
        open(0, "rb", closefd=False) as stdin,
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
    stdin: BinaryIO,
    console: Console,
) -> int:
    """Run one command and return its exit status."""
    try:
        match list(arguments):
            case ["--version" | "-V" | "version"]:
                console.print(f"{VERSION}\n".encode())
                return 0
            case ["--help" | "-h" | "help"]:
                return _help(console)
            case ["whoami"]:
                return _whoami(environment, console)
            case ["whoami", extra, *_]:
                raise UsageError(f"unexpected argument '{extra}' found")
            case ["chat", *rest]:
                return _chat(parse_chat(rest), environment, stdin, console)
            case ["acp", *rest]:
                return _acp(parse_acp(rest), environment, console)
            case ["login" | "logout" | "mcp" | "agent" | "settings" as command, *_]:
                raise UsageError(f"the simulator has no '{command}'")
            case [other, *_]:
                raise UsageError(f"unrecognized subcommand '{other}'")
            case _:
                raise UsageError("a subcommand is required: chat, acp or whoami")
    except UsageError as error:
        console.complain(f"error: {error}\n\nFor more information, try '--help'.")
        return 2
    except DirectiveError as error:
        console.complain(f"error: simulator directive: {error}")
        return 2
    except (ActionError, StoreTrouble, OSError) as error:
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


def _chat(chat: Chat, environment: Mapping[str, str], stdin: BinaryIO, console: Console) -> int:
    if chat.help:
        return _help(console)
    if chat.list_sessions:
        return _list_sessions(chat, environment, console)
    if chat.delete_session is not None:
        return _delete_session(chat, environment, console)
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
    status = Turn(chat, prompt, directives, environment).run(console, log)
    log.write("stop", status=status)
    return status


def _acp(options: Acp, environment: Mapping[str, str], console: Console) -> int:
    if options.help:
        return _help(console)
    if not environment.get("KIRO_API_KEY", "").strip():
        console.print(b"You are not logged in, please log in with kiro-cli login\n")
        return 1
    from sortie.kiro.simulator.acp.server import serve

    serve(options, environment, console)
    return 0


def _prompt(chat: Chat, stdin: BinaryIO) -> str:
    """Return the prompt; stdin is read only where none was given and it is no terminal."""
    if chat.prompt is not None:
        return os.fsencode(chat.prompt).decode(errors="replace")
    if stdin.isatty():
        return ""
    return stdin.read().decode(errors="replace").strip()


def _help(console: Console) -> int:
    console.print(_HELP.encode())
    return 0


def _list_sessions(chat: Chat, environment: Mapping[str, str], console: Console) -> int:
    """List the conversations of this directory; as in Kiro, headless turns do not count."""
    from sortie.kiro.simulator.sessions import Sessions, as_json, as_text

    do, here = read_directives("", environment), os.getcwd()
    sessions = Sessions(environment).listed(here, headless=do.list_headless)
    if chat.format == "json":
        text = as_json(here, sessions)
    else:
        text = as_text(here, sessions, time.time())
    if do.list_stderr:
        console.complain(text.removesuffix("\n"))
    else:
        console.print(text.encode(errors="replace"))
    return 0


def _delete_session(chat: Chat, environment: Mapping[str, str], console: Console) -> int:
    from sortie.kiro.simulator.sessions import Sessions

    assert chat.delete_session is not None
    Sessions(environment).delete(chat.delete_session, chat.session_source)
    console.print(f"Deleted chat session {chat.delete_session}\n".encode())
    return 0
