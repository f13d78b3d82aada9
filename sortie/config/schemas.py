"""What decoding needs to know besides the front matter."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import PurePosixPath
from typing import Any

from msgspec import Struct, field
from pydantic import BaseModel

from sortie.config.report import Finding
from sortie.config.settings import AgentSettings, TrackerSettings
from sortie.documents import Place
from sortie.model.hiding import repr_without


class BlockSchema(Struct, frozen=True, kw_only=True):
    """The block of an adapter: its name, its model, and what to warn about.

    ``warn`` takes the decoded block and returns ``(dotted key, message)``; it is asked only for
    the chosen adapter. ``commands`` are words that people take for a kind of their own, each with
    the command by which this kind runs what they mean.
    """

    block_name: str
    model: type[BaseModel]
    warn: Callable[[Any], Iterable[tuple[str, str]]] = lambda _settings: ()
    commands: Mapping[str, str] = field(default_factory=dict)


class AgentSchema(BlockSchema, frozen=True, kw_only=True):
    """The block of an agent's adapter.

    ``check`` takes the decoded settings of ``agent`` and the decoded block, and yields what is
    wrong with them; it is asked as a tracker's is. ``unreported`` is what an agent never tells to
    have used: of ``tokens``, ``credits`` and ``cost``.
    """

    check: Callable[[AgentSettings, Any], Iterable[Finding]] = lambda _agent, _block: ()
    unreported: frozenset[str] = frozenset()


class TrackerSchema(BlockSchema, frozen=True, kw_only=True):
    """The block of a tracker's adapter, and what it makes of the keys of ``tracker``.

    Of ``TRACKER_KEYS`` those in ``required`` must be set, and those in ``known`` may be. ``check``
    takes the decoded settings of ``tracker`` and the decoded block, and yields what is wrong with
    them; it is asked only for the chosen adapter, and a setting that has an error already is not
    reported again.
    """

    required: frozenset[str] = frozenset()
    known: frozenset[str] = frozenset()
    has_labels: bool = True
    check: Callable[[TrackerSettings, Any], Iterable[Finding]] = lambda _tracker, _block: ()


class Schemas(Struct, frozen=True, kw_only=True):
    """The blocks of all adapters, by kind.

    ``broken`` says what is wrong with adapters that are there and cannot be used, by the section
    whose ``kind`` names them and that kind.
    """

    agents: Mapping[str, AgentSchema]
    trackers: Mapping[str, TrackerSchema]
    broken: Mapping[tuple[str, str], str] = field(default_factory=dict)

    def blocks(self) -> Iterator[BlockSchema]:
        """Yield every adapter's block."""
        yield from self.trackers.values()
        yield from self.agents.values()


class Override(Struct, frozen=True, kw_only=True):
    """A value from outside WORKFLOW.md."""

    text: str
    place: Place

    __repr__ = repr_without("text")


class DecodeContext(Struct, frozen=True, kw_only=True):
    """Where a WORKFLOW.md stands, and what is around it.

    ``path`` is how the file is named in problems; ``directory`` is absolute; ``identity`` tells
    the file from every other on this machine. ``home`` is "" where there is none. ``env_file``
    holds the last ``SORTIE_*`` line of each name. ``flags`` are values of the command line by
    dotted key, ``server.port``; they win over all else.
    """

    path: str
    directory: PurePosixPath
    identity: str
    home: str
    env: Mapping[str, str] = field(default_factory=dict)
    env_file: Mapping[str, Override] = field(default_factory=dict)
    flags: Mapping[str, str] = field(default_factory=dict)

    __repr__ = repr_without("env")

    def lookup(self, name: str) -> str:
        """Return a variable's value, "" where it is unset; the environment comes first."""
        if value := self.env.get(name):
            return value
        line = self.env_file.get(name)
        return line.text if line else ""

    def state_directory(self) -> PurePosixPath | None:
        """Return where programs keep their state, None where neither variable says."""
        given = PurePosixPath(self.env.get("XDG_STATE_HOME", ""))
        if given.is_absolute():
            return given
        return PurePosixPath(self.home, ".local/state") if self.home.startswith("/") else None
