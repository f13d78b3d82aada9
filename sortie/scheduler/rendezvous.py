"""Chooses the daemon that should lead a workflow, by weighted rendezvous hashing; pure.

Each daemon comes to the same choice by itself, from the same candidates. A daemon that joins takes
workflows over in proportion to its weight, and a daemon that leaves gives up its own: no workflow
moves between two daemons that stay.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from hashlib import sha256

_BITS = 52  # half a step more and a float still holds it exactly, so that no value becomes 0 or 1


def score(workflow: str, daemon: str, weight: float) -> float:
    """Return how well a daemon suits a workflow: the greater, the better. ``weight`` is above 0."""
    digest = sha256(f"{len(workflow)} {workflow} {daemon}".encode()).digest()
    uniform = ((int.from_bytes(digest[:8]) >> (64 - _BITS)) + 0.5) / (1 << _BITS)
    return weight / -math.log(uniform)


def preferred(candidates: Mapping[str, float], workflow: str) -> str | None:
    """Return the id of the daemon that should lead a workflow, None where there is no candidate.

    ``candidates`` gives the weight of each daemon that can lead it, by the daemon's id.
    """
    if not candidates:
        return None
    return max(candidates, key=lambda daemon: (score(workflow, daemon, candidates[daemon]), daemon))
