"""Kiro's tool that runs commands: whether it may run one, and what comes of it."""

from __future__ import annotations

import json
import os
import re
from argparse import Namespace
from collections.abc import Iterable, Mapping

NAME = "execute_bash"
REFUSAL = "Tool approval required but --no-interactive was specified"

_NAMES = ("shell", NAME)
_ALL = ("*", "@builtin")
_SCRIPT = os.path.join(".sortie", "tools", "call.sh")
_TOLD = re.compile(r"^ *(/bin/sh (?:'.+'|\S+)) NAME ", re.MULTILINE)


def command_of_call(call: str, prompts: Iterable[str]) -> str | None:
    """Return the command of a call of Sortie's tools, ``NAME ARGUMENTS``, as prompts tell of it.

    None where they do not tell of the script in the current directory: no other one is run, since
    a prompt may hold a stranger's text.
    """
    from shlex import join

    name, _, arguments = call.partition(" ")
    for told in (found for prompt in prompts for found in _TOLD.findall(prompt)):
        if os.path.realpath(script := _script(told)) == os.path.realpath(_SCRIPT):
            return join(word for word in ("/bin/sh", script, name, arguments.strip()) if word)
    return None


def _script(told: str) -> str:
    """Return the script of a command that has no other argument, "" where there is none."""
    from shlex import split

    try:
        words = split(told)
    except ValueError:
        return ""
    return words[1] if len(words) == 2 else ""


def may_run(command: str, chat: Namespace, agent: Mapping[str, object]) -> bool:
    """Tell whether a command is trusted: by the command line, or by the file of the agent."""
    trusted = [*(chat.trust_tools or "").split(","), *_texts(agent.get("allowedTools"))]
    if chat.trust_all_tools or any(name in trusted for name in (*_NAMES, *_ALL)):
        return True
    settings = _mapping(agent.get("toolsSettings"))
    of_shell = (_mapping(settings.get(name)).get("allowedCommands") for name in _NAMES)
    patterns = [pattern for allowed in of_shell for pattern in _texts(allowed)]
    return any(re.fullmatch(pattern, command) for pattern in patterns)


def run(command: str) -> tuple[str, bool]:
    """Run a command as Kiro does, and return what it has said and whether it failed."""
    import subprocess  # only a turn that uses the tool starts more slowly for it

    ran = subprocess.run(["/bin/sh", "-c", command], capture_output=True, check=False)
    said = (ran.stdout + ran.stderr).decode(errors="replace")
    return said, ran.returncode != 0


def read_agent(path: str | None) -> Mapping[str, object]:
    """Return what an agent's file says, nothing where there is none, or it cannot be read."""
    if path is None:
        return {}
    with open(path, encoding="utf-8") as file:
        try:
            return _mapping(json.load(file))
        except ValueError:  # Kiro goes on with its own agent
            return {}


def _mapping(value: object) -> Mapping[str, object]:
    return value if isinstance(value, dict) else {}


def _texts(value: object) -> list[str]:
    return [text for text in value if isinstance(text, str)] if isinstance(value, list) else []
