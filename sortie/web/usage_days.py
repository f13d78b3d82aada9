"""What agents used on each day, as programs get it: by HTTP and from ``sortie stats``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from sortie.model.numbers import rounded
from sortie.model.spending import AMOUNTS

if TYPE_CHECKING:
    from sortie.store import DayRow

MOST_DAYS = 366
"""How many days can be asked for over HTTP."""

DAYS = 14
"""How many there are where nobody says."""


def usage_day(row: DayRow) -> Mapping[str, str | int | float | None]:
    """Return what one agent did and used on one day; unknown is null."""
    spent = row.spent.rounded()
    return {
        "day": row.day,
        "agent": row.agent,
        "runs": row.runs,
        "turns": row.turns,
        "seconds_running": rounded(row.seconds),
        "tokens": spent.tokens,
        **{name: getattr(spent, name) for name in AMOUNTS},
    }


def usage_day_schema() -> Mapping[str, Any]:
    """Return the JSON schema of ``usage_day``."""
    kinds = {"day": "string", "agent": "string", "runs": "integer", "turns": "integer"}
    kinds["seconds_running"] = "number"
    amounts = {name: {"type": ["number", "null"]} for name in ("tokens", *AMOUNTS)}
    properties = {name: {"type": kind} for name, kind in kinds.items()} | amounts
    return {"type": "object", "required": list(properties), "properties": properties}
