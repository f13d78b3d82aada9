"""What a run's agent is known to have done, as it is gathered, recorded and shown."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct


class Activity(Struct, frozen=True, kw_only=True):
    """What is known of an agent's work; None is unknown, and empty is nothing at all.

    ``files_modified`` are paths, relative to the workspace where they lie in it, each once, in the
    order of the first time; ``files_omitted``: there are more than are kept. ``tool_uses`` counts
    the uses of each tool, by its name. ``model`` is the one that answered last.
    """

    model: str | None = None
    files_modified: tuple[str, ...] | None = None
    files_omitted: bool = False
    tool_uses: Mapping[str, int] | None = None


UNKNOWN = Activity()
"""The activity of an agent that reports nothing."""
