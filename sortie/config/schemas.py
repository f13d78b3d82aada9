"""What decoding needs to know of adapters: their blocks."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from msgspec import Struct, field
from pydantic import BaseModel

from sortie.config.report import Finding
from sortie.config.settings import AgentSettings, TrackerSettings
from sortie.model.trust import Right


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
    have used: of ``tokens``, ``credits`` and ``cost``. ``tools_hindrance`` is as the adapter's.
    ``read_only`` returns a block with which a session can only read, None where the agent cannot be
    kept to that. ``leads`` tells whether the agent of these settings can be led to its model
    through a proxy, and ``leaves_to_people`` which key of the block leaves something to people,
    None where nothing does.
    """

    check: Callable[[AgentSettings, Any], Iterable[Finding]] = lambda _agent, _block: ()
    unreported: frozenset[str] = frozenset()
    tools_hindrance: Callable[[Any], str | None] = lambda _block: None
    read_only: Callable[[Any], BaseModel] | None = None
    leads: Callable[[AgentSettings], bool] = lambda _agent: False
    leaves_to_people: Callable[[Any], str | None] = lambda _block: None


class TrackerSchema(BlockSchema, frozen=True, kw_only=True):
    """The block of a tracker's adapter, and what it makes of the keys of ``tracker``.

    Of ``TRACKER_KEYS`` those in ``required`` must be set, and those in ``known`` may be. ``rights``
    are those of people that it can tell of. ``has_label_states``: it keeps states as labels beside
    those of its own. ``check`` takes the decoded settings of ``tracker`` and the decoded block, and
    yields what is wrong with them; it is asked only for the chosen adapter, and a setting that has
    an error already is not reported again.
    """

    required: frozenset[str] = frozenset()
    known: frozenset[str] = frozenset()
    has_labels: bool = True
    has_label_states: bool = False
    rights: frozenset[Right] = frozenset()
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
