"""Adapters' blocks and surroundings for tests of the settings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import PurePosixPath
from typing import Annotated, Literal, Self

from msgspec.structs import replace
from pydantic import BaseModel, ConfigDict, Field, StrictBool, model_validator

from sortie.config.context import DecodeContext, Override
from sortie.config.decode import Decoded, decode
from sortie.config.schemas import AgentSchema, Schemas, TrackerSchema
from sortie.config.settings import Settings
from sortie.config.values import PathText, Secret
from sortie.documents import Node, Place
from sortie.workflow.front_matter import split_workflow


class Files(BaseModel):
    """The block of a tracker with a required path."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    path: PathText
    others: tuple[PathText, ...] = ()
    password: Secret | None = None


class Board(BaseModel):
    """The block of a tracker that needs nothing."""

    model_config = ConfigDict(frozen=True)

    columns: Annotated[int, Field(ge=1, lt=10)] = 3
    view: Literal["list", "grid"] = "list"
    code: Annotated[str, Field(pattern="^[a-z]+$")] = "x"


class Robot(BaseModel):
    """The block of an agent with native pydantic types and a rule of its own."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    model: str | None = None
    trust_all: StrictBool = False
    trust: tuple[str, ...] = ()
    level: int | str = 1

    @model_validator(mode="after")
    def _one_of_both(self) -> Self:
        if self.trust_all and self.trust:
            raise ValueError("trust_all and trust exclude each other")
        return self


def warn(robot: Robot) -> Sequence[tuple[str, str]]:
    """Warn about a robot that trusts nothing."""
    return () if robot.trust_all or robot.trust else (("robot.trust", "trusts nothing"),)


SCHEMAS = Schemas(
    agents={
        "kiro": AgentSchema(
            block_name="robot", model=Robot, warn=warn, unreported=frozenset({"tokens"})
        )
    },
    trackers={
        "file": TrackerSchema(
            block_name="file", model=Files, known=frozenset({"endpoint", "api_key", "project"})
        ),
        "board": TrackerSchema(block_name="board", model=Board),
    },
)

GOOD = """\
tracker:
  kind: file
  active_states: [Todo]
  handoff_state: Review
file:
  path: issues
robot:
  trust_all: true
"""


def around(
    env: Mapping[str, str] | None = None,
    *,
    home: str = "/home/me",
    env_file: Mapping[str, str] | None = None,
    flags: Mapping[str, str] | None = None,
) -> DecodeContext:
    """Return surroundings of ``/srv/WORKFLOW.md``, called ``W`` in problems."""
    lines = {
        name: Override(text=text, place=Place(source="E", line=number, column=1, name=name))
        for number, (name, text) in enumerate((env_file or {}).items(), 1)
    }
    return DecodeContext(
        path="W",
        directory=PurePosixPath("/srv"),
        identity="/srv/WORKFLOW.md",
        home=home,
        env=env or {},
        env_file=lines,
        flags=flags or {},
    )


def tree(front_matter: str) -> Node:
    """Return a front matter as decoding gets it; its first line is line 1."""
    parts = split_workflow(f"---\n{front_matter}\n---\n", "W")
    assert parts.document is not None
    return _lifted(parts.document)


def _lifted(node: Node) -> Node:
    """Count lines from the first below ``---``."""

    def up(place: Place) -> Place:
        return Place(source=place.source, line=max(1, place.line - 1), column=place.column)

    value = node.value
    if isinstance(value, tuple):
        value = tuple(_lifted(item) for item in value)
    elif isinstance(value, Mapping):
        value = {key: _lifted(item) for key, item in value.items()}
    key = _lifted(node.key) if node.key else None
    return replace(node, value=value, origin=up(node.place), key=key)


def decoded(front_matter: str, surroundings: DecodeContext | None = None) -> Decoded:
    """Decode a front matter in these surroundings."""
    return decode(tree(front_matter), schemas=SCHEMAS, context=surroundings or around())


def findings(front_matter: str, surroundings: DecodeContext | None = None) -> list[str]:
    """Return all problems as text."""
    return [str(problem) for problem in decoded(front_matter, surroundings).problems]


def settings_of(front_matter: str, surroundings: DecodeContext | None = None) -> Settings:
    """Return the settings of a front matter that has no error."""
    result = decoded(front_matter, surroundings)
    assert result.settings is not None, result.problems
    return result.settings
