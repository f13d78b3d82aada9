"""Mutants that no test can kill, because nothing that anybody can notice changes, and why."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path

FILE = Path(__file__).with_name("explained.toml")


@dataclass(frozen=True, slots=True, kw_only=True)
class Explained:
    """A change of a file, as in a Mutant, and why it changes nothing."""

    file: str
    was: str
    becomes: str
    why: str


def explained() -> tuple[Explained, ...]:
    """Read what is explained."""
    entries = tomllib.loads(FILE.read_text()).get("mutant", [])
    return tuple(Explained(**entry) for entry in entries)
