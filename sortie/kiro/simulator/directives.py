"""What a prompt or the environment asks the simulator to do."""

from __future__ import annotations

import re
import signal
from collections.abc import Callable, Iterator, Mapping

ENVIRONMENT_PREFIX = "KIRO_SIM_"

_LINE = re.compile(r"^[ \t>*-]*sim:[ \t]*(.*?)[ \t\r]*$", re.MULTILINE)
_PAIR = re.compile(
    r"\s*([a-z_0-9]+)=(?:\"([^\"]*)\"|'([^']*)'|(.*?))(?=\s+[a-z_0-9]+=|\s*$)", re.DOTALL
)


class DirectiveError(Exception):
    """A directive is unknown or malformed."""


class Directives:
    """What to do; the values here are the defaults."""

    def __init__(self) -> None:
        self.delay = 0.0
        self.silence = 0.0
        self.hang = False
        self.output = 0
        self.long_line = 0
        self.tools = "none"
        self.call: tuple[str, ...] = ()
        self.untrusted = "exit"
        self.stderr = ""
        self.exit = 0
        self.signal = 0
        self.fail_first = 0
        self.auth_failure = False
        self.no_trailer = False
        self.credits = 0.05
        self.say = ""
        self.recall = False
        self.child = "none"
        self.ignore_sigterm = False
        self.store = "v1"
        self.note = True
        self.write = ""
        self.status = ""
        self.set_state = ""
        self.log = ""
        self.whoami_delay = 0.0
        self.login = False


def _amount(text: str) -> float:
    value = float(text)
    if not 0 <= value < float("inf"):
        raise ValueError("is no amount from 0 on")
    return value


def _count(text: str) -> int:
    if not (text.isascii() and text.isdigit()):
        raise ValueError("is no whole number from 0 on")
    return int(text)


def _exit_status(text: str) -> int:
    if (value := _count(text)) > 255:
        raise ValueError("is no exit status from 0 to 255")
    return value


def _signal(text: str) -> int:
    name = text.upper()
    name = name if name.startswith("SIG") else f"SIG{name}"
    if name not in signal.Signals.__members__:
        raise ValueError("is no signal's name")
    return signal.Signals[name].value


def _switch(text: str) -> bool:
    if text.lower() in ("1", "true", "yes", "on"):
        return True
    if text.lower() in ("0", "false", "no", "off"):
        return False
    raise ValueError("is neither true nor false")


def _text(text: str) -> str:
    if not text:
        raise ValueError("is empty")
    return text


def _one_of(*choices: str) -> Callable[[str], str]:
    def parse(text: str) -> str:
        if text not in choices:
            raise ValueError(f"is none of {', '.join(choices)}")
        return text

    return parse


_KINDS = ("none", "plain", "setsid", "double_fork", "hold_stdout", "cleared", "overwritten")
_KNOWN: dict[str, tuple[Callable[[str], object], str]] = {
    "delay": (_amount, "SECONDS   work for so long, redrawing a progress line"),
    "silence": (_amount, "SECONDS   print nothing for so long"),
    "hang": (_switch, "1         print nothing for ever"),
    "output": (_count, "BYTES     answer with so much text, in lines"),
    "long_line": (_count, "BYTES     answer with one line of this length"),
    "tools": (_one_of("none", "old", "new"), "STYLE     show a tool's use: none, old, new"),
    "call": (
        _text,
        "TOOL JSON     call one of Sortie's tools by Kiro's shell; may come several times",
    ),
    "untrusted": (
        _one_of("exit", "deny"),
        "HOW       what is done with a call that is not trusted",
    ),
    "stderr": (_text, "TEXT      print this on stderr"),
    "exit": (_exit_status, "STATUS    end with it; unless 0, without answer and trailer"),
    "signal": (_signal, "NAME      die by this signal in the middle of the answer"),
    "fail_first": (_count, "N         exit 1 for the first N turns in this directory"),
    "auth_failure": (_switch, "1         behave as with a bad KIRO_API_KEY"),
    "no_trailer": (_switch, "1         leave the credits trailer out"),
    "credits": (_amount, "FLOAT     the number in the trailer"),
    "say": (_text, "TEXT      answer with it"),
    "recall": (_switch, "1         answer with the earlier prompts of the conversation"),
    "child": (_one_of(*_KINDS), f"KIND      leave a process: {', '.join(_KINDS[1:])}"),
    "ignore_sigterm": (_switch, "1         do not die by SIGTERM, nor does the child"),
    "store": (_one_of("v1", "v2", "none"), "ENGINE    where it is kept: v1, v2, none"),
    "note": (_switch, "0         write no note to SORTIE_DEMO.md"),
    "write": (_text, "FILE      write this file; behind a blank, with this text"),
    "status": (_text, "WORD      write it to .sortie/status; without it done, if asked for"),
    "set_state": (_text, "FILE.md STATE   set the state in a Markdown issue's front matter"),
    "log": (_text, "FILE      append a JSON line at start, stop and for a child"),
    "whoami_delay": (_amount, "SECONDS   how long whoami takes (environment only)"),
    "login": (_switch, "1         somebody is logged in: no key is needed, and MCP is on"),
}


def describe() -> str:
    """Return one line of help for each directive."""
    return "\n".join(f"  {name}={text}" for name, (_, text) in _KNOWN.items())


def read_directives(prompt: str, environment: Mapping[str, str]) -> Directives:
    """Return what is asked for; the environment beats the prompt. Raises DirectiveError."""
    directives = Directives()
    for line in _LINE.findall(prompt):
        for name, text in _pairs(line):
            _set(directives, name, text, f"sim: {line}")
    for key in sorted(environment):
        if key.startswith(ENVIRONMENT_PREFIX):
            name = key.removeprefix(ENVIRONMENT_PREFIX).lower()
            directives.call = () if name == "call" else directives.call
            _set(directives, name, environment[key], key)
    return directives


def is_directive(line: str) -> bool:
    """Tell whether a line of a prompt is read by ``read_directives``."""
    return _LINE.match(line) is not None


def _pairs(line: str) -> Iterator[tuple[str, str]]:
    """Yield a line's directives: ``a=1 b="x y"``, or one alone: ``hang``, ``status WORD``."""
    if "=" not in line:
        name, _, text = line.partition(" ")
        yield name, text.strip() or "1"
        return
    position = 0
    for match in _PAIR.finditer(line):
        if match.start() != position:
            break
        position = match.end()
        yield match[1], next(text for text in match.groups()[1:] if text is not None)
    if position != len(line):
        raise DirectiveError(f"sim: {line}: not of the form name=value")


def _set(directives: Directives, name: str, text: str, place: str) -> None:
    if name not in _KNOWN:
        raise DirectiveError(f"{place}: there is no directive {name!r}; see --help")
    try:
        value = _KNOWN[name][0](text.strip())
    except ValueError as error:
        reason = "is no number" if "could not convert" in str(error) else str(error)
        raise DirectiveError(f"{place}: {name}: {text!r} {reason}") from error
    setattr(directives, name, (*directives.call, value) if name == "call" else value)
