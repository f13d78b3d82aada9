"""Run ids that no other process of the tests uses.

What ends a run looks for its id in all processes of the machine: of two tests with one id that are
under way at once, each would end what the other has started.
"""

from __future__ import annotations

import os

from sortie.model import RunId


def own_run_id(name: str) -> RunId:
    """Return an id that begins with a name, and is this process's own."""
    return RunId(f"{name}-{os.getpid()}")
