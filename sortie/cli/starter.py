"""The workflow file to begin with, for an agent and a tracker.

``starter.md`` holds what all of them have. The folder of an adapter that is built in adds what is
its own in ``starter.yaml``: on top, as comments, what is to be done first, then its settings. Those
of ``agent`` go among the others of that block.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from sortie.model import SortieError

if TYPE_CHECKING:
    from sortie.adapters import Adapters

_AGENT = "agent:"


class Starter(Struct, frozen=True, kw_only=True):
    """A workflow file to begin with; ``first`` is what is to be done before it is of use."""

    text: str
    first: Sequence[str]


def starter(agent: str, tracker: str) -> Starter:
    """Return the workflow file for these kinds. Raises SortieError where one is not there."""
    from sortie.agents import ADAPTERS as agents
    from sortie.trackers import ADAPTERS as trackers

    of_tracker, for_tracker = _lines(trackers, "tracker", tracker)
    of_agent, for_agent = _lines(agents, "agent", agent)
    head, _, block = of_agent.partition("\n\n")
    command = head.removeprefix(_AGENT).strip("\n")
    parts = {
        "@TRACKER@": of_tracker or f"tracker:\n  kind: {tracker}",
        "  kind: @AGENT@": "\n".join(part for part in (f"  kind: {agent}", command) if part),
        "@BLOCK@\n": f"\n{block}\n" if block else "",
    }
    text = files("sortie.cli").joinpath("starter.md").read_text(encoding="utf-8")
    for mark, part in parts.items():
        text = text.replace(mark, part)
    return Starter(text=text, first=(*for_tracker, *for_agent))


def _lines(adapters: Adapters[Any], option: str, kind: str) -> tuple[str, Sequence[str]]:
    """Return the settings of a kind, "" of one that has none to offer, and what to do first."""
    try:
        adapters.load(kind)
    except LookupError as error:
        raise SortieError(f"--{option} {kind}: {error.args[0]}") from error
    if kind not in adapters.built_in:
        return "", ()
    folder = files(f"sortie.{option}s").joinpath(kind.replace("-", "_"))
    lines = folder.joinpath("starter.yaml").read_text(encoding="utf-8").splitlines()
    first = [line.removeprefix("# ") for line in lines if line.startswith("# ")]
    return "\n".join(line for line in lines if not line.startswith("# ")), first
