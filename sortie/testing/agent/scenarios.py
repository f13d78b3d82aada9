"""What an agent's program can be made to do, in the words that it understands: scenarios.toml.

A program stands behind every adapter, and only its author knows how to make it misbehave. The file
names for each scenario the prompt (and, where that cannot do it, variables of the environment)
that makes the program, or one that stands in for it, do what the scenario says.
"""

from __future__ import annotations

import sys
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from sortie.model import SortieError
from sortie.testing.checks import NotTried

FILE_NAME = "scenarios.toml"

SCENARIOS: Mapping[str, str] = {
    "success": "say something, and complete the turn",
    "failure": "say that the prompt failed, as the agent does where a model cannot be reached",
    "usage-limit": "say that a usage limit is reached, as the agent's provider does",
    "unproven": "end the turn as after a success, though there was none: an exit of 0 without a"
    " result, or whatever a careless reader would take for one",
    "hang": "print nothing and do nothing until asked to stop, then stop",
    "deaf": "hang, and heed neither a request to stop nor SIGTERM",
    "talk": "write something at least five times a second, without end",
    "tool": "run a tool that does not end, in a session and group of its own, and wait for it",
    "orphan": "as tool, but the process has lost its parent: a double fork",
    "leftover": "run a process that does not end in a session of its own, work on beside it for a"
    " second, and complete the turn without it",
    "holder": "as leftover, and the process holds stdout and stderr open",
    "exit-1": "exit with status 1 in mid-turn",
    "exit-127": "exit with status 127 in mid-turn",
    "exit-137": "exit with status 137 in mid-turn",
    "exit-143": "exit with status 143 in mid-turn",
    "unterminated": "say `says`, and exit without the end of that line",
    "long-text": "say more than 500 characters in one piece",
    "megabyte": "write one valid line of a mebibyte, and complete the turn",
    "too-long": "write one line of more than 10 MiB, and live on",
    "noise": "write at least a mebibyte of output that need not be read, and complete the turn",
    "junk": "write what is no message of the protocol between valid ones (no JSON, JSON of the"
    " wrong shape, bytes that are no UTF-8), and complete the turn",
    "unknown": "send messages, updates and fields that no version knows, and complete the turn",
    "repeated-ids": "use ids of tools or requests a second time, and complete the turn",
    "unasked": "answer requests that were not made, and complete the turn",
    "secret": "say `secret`, which stands in `env`, on stdout and stderr, and end the turn",
    "remember": "remember something in the conversation, and complete the turn",
    "recall": "say `says`, which can be known from the turn of remember only",
}
"""The scenarios by name, and what the program does in each."""

DEFAULTS: Mapping[str, Mapping[str, str]] = {
    "success": {"prompt": "Answer with the single word OK. Use no tool."},
    "tool": {
        "prompt": "Run the shell command `tail -f /dev/null` in the foreground, wait until it ends,"
        " and answer OK then. Do nothing else."
    },
    "remember": {"prompt": "Remember the word PONG. Answer OK. Use no tool."},
    "recall": {
        "prompt": "Which word did I ask you to remember? Answer with that word alone. Use no tool.",
        "says": "PONG",
    },
}
"""What a real agent does that is asked for it in plain words; all else needs a file."""


class Scenario(BaseModel):
    """How the program is made to do something.

    ``env`` is added to its environment. ``says`` is part of what it says then, ``secret`` what it
    prints and what must be hidden.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    prompt: str
    env: dict[str, str] = Field(default_factory=dict, repr=False)
    says: str = ""
    secret: str = Field(default="", repr=False)


def _table(value: object) -> object:
    return {"prompt": value} if isinstance(value, str) else value


class Scenarios(BaseModel):
    """A file of scenarios.

    ``command`` is the program where none is named otherwise, ``settings`` the adapter's block,
    ``env`` what every session has in its environment. ``impossible`` says of scenarios why this
    agent cannot get into them. Times are seconds.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    command: str | tuple[str, ...] | None = None
    settings: dict[str, Any] = Field(default_factory=dict)
    env: dict[str, str] = Field(default_factory=dict, repr=False)
    read_timeout: float = Field(default=60.0, gt=0)
    stop_grace: float = Field(default=5.0, gt=0)
    scenarios: dict[str, Annotated[Scenario, BeforeValidator(_table)]] = Field(default_factory=dict)
    impossible: dict[str, str] = Field(default_factory=dict)
    absent: str = "it needs a program that misbehaves; describe how in scenarios.toml"

    def find(self, *names: str) -> Scenario:
        """Return the first of these scenarios that there is. Raises NotTried with the reason."""
        for name in names:
            if name in self.scenarios:
                return self.scenarios[name]
        name = names[0]
        raise NotTried(f"{name}: {self.impossible.get(name, self.absent)}")


def plain_scenarios() -> Scenarios:
    """Return what every agent can be asked for without a file; its model is asked."""
    return Scenarios.model_validate({"scenarios": DEFAULTS})


def read_scenarios(path: Path, scratch: Path) -> Scenarios:
    """Read a file, or the ``scenarios.toml`` of a directory.

    In its texts ``{here}`` is its directory, ``{python}`` the interpreter, ``{scratch}`` a
    directory that lasts as long as the checks. Raises SortieError.
    """
    file = path / FILE_NAME if path.is_dir() else path
    try:
        tree = tomllib.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise SortieError(f"{file}: cannot be read: {error}") from error
    words = {
        "{here}": str(file.absolute().parent),
        "{python}": sys.executable,
        "{scratch}": str(scratch),
    }
    try:
        read = Scenarios.model_validate(_filled(tree, words))
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(map(str, first["loc"]))
        raise SortieError(f"{file}: {place}: {first['msg']}") from error
    for name in (*read.scenarios, *read.impossible):
        if name not in SCENARIOS:
            known = ", ".join(SCENARIOS)
            raise SortieError(f"{file}: there is no scenario {name!r}; known: {known}")
    return read


def _filled(value: object, words: Mapping[str, str]) -> object:
    match value:
        case str():
            for word, meaning in words.items():
                value = value.replace(word, meaning)
            return value
        case list():
            return [_filled(item, words) for item in value]
        case dict():
            return {key: _filled(item, words) for key, item in value.items()}
        case _:
            return value
