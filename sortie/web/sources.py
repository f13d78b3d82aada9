"""Where answers come from."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from starlette.routing import Route

from sortie.web.health import Health
from sortie.web.live import Live
from sortie.web.redaction import NOTHING_SECRET, Redaction
from sortie.web.state import StateView

if TYPE_CHECKING:
    from sortie.telemetry.metrics.exposition import Exposition


@dataclass(frozen=True, slots=True, kw_only=True)
class Sources:
    """Where answers come from; each returns at once, from what is known already.

    ``metrics`` takes the value of the Accept header; ``live`` tells what changes; ``pages``
    are the routes of what is there for people. ``redaction`` keeps secrets out of answers.
    """

    state: Callable[[], StateView]
    health: Callable[[], Health]
    metrics: Callable[[str], Exposition]
    live: Live
    pages: tuple[Route, ...] = ()
    redaction: Redaction = NOTHING_SECRET
