"""What one call is given: its flags, its environment, and what comes on stdin."""

from __future__ import annotations

import json
import os
import select
from collections.abc import Mapping
from typing import Any

from sortie.kiro.entire.repository import STREAM_LIMIT, EntireError, EntireRepository

PAYLOAD_SILENCE = 0.1
"""Seconds for which a hook's payload may be silent: an IDE may hold the pipe open."""

Flags = Mapping[str, str]


class Call:
    """One call: its flags, its environment, and the repository that it is about."""

    def __init__(self, flags: Flags, environment: Mapping[str, str]) -> None:
        self.flags = flags
        self.environment = environment
        self.repository = EntireRepository(environment.get("ENTIRE_REPO_ROOT") or os.getcwd())

    def flag(self, name: str) -> str:
        """Return a flag that has to be given."""
        try:
            return self.flags[name]
        except KeyError:
            raise EntireError(f"--{name} is missing") from None

    def number(self, name: str) -> int:
        """Return a flag that has to be a whole number."""
        text = self.flag(name)
        try:
            return int(text)
        except ValueError:
            raise EntireError(f"--{name} is no whole number: {text!r}") from None


def flags_in(arguments: list[str], valued: list[str], plain: list[str]) -> Flags:
    """Return the flags of a command line. Raises EntireError for one that is not known here."""
    found: dict[str, str] = {}
    rest = list(arguments)
    while rest:
        argument = rest.pop(0)
        name, has_value, value = argument.removeprefix("--").partition("=")
        if not argument.startswith("--") or name not in (*valued, *plain):
            raise EntireError(f"there is no flag {argument!r} here")
        if name in plain:
            found[name] = ""
        elif has_value:
            found[name] = value
        elif rest:
            found[name] = rest.pop(0)
        else:
            raise EntireError(f"{argument} wants a value")
    return found


def json_input() -> dict[str, Any]:
    """Return the object on stdin; an empty one where nothing is. Raises EntireError."""
    content = input_bytes()
    try:
        told = json.loads(content) if content.strip() else {}
    except (ValueError, RecursionError) as exc:
        raise EntireError(f"the input is no JSON: {exc}") from None
    if not isinstance(told, dict):
        raise EntireError("the input is no JSON object")
    return told


def input_bytes(silence: float | None = None) -> bytes:
    """Return all of stdin, or what comes before it is silent for so many seconds."""
    content = b""
    while silence is None or select.select([0], [], [], silence)[0]:
        chunk = os.read(0, 1 << 16)
        if not chunk:
            break
        content += chunk
        if len(content) > STREAM_LIMIT:
            raise EntireError(f"the input is larger than {STREAM_LIMIT} bytes")
    return content


def text_in(told: Mapping[str, Any], name: str) -> str:
    """Return a text of the input; "" where there is none."""
    value = told.get(name)
    return value if isinstance(value, str) else ""
