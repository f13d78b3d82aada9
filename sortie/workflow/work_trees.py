"""Find the git work tree that a directory lies in."""

from __future__ import annotations

import os
from pathlib import Path


def work_tree_around(directory: Path) -> Path | None:
    """Return the top of the innermost git work tree that holds a directory, None where none does.

    The directory need not exist. A ``.git`` of its own counts too.
    """
    real = Path(os.path.realpath(directory))
    return next((place for place in (real, *real.parents) if _has_git(place)), None)


def _has_git(place: Path) -> bool:
    try:
        return os.path.lexists(place / ".git")
    except (OSError, ValueError):
        return False
