"""Names of containers, which tell the process that they are for, and so whether that has ended."""

from __future__ import annotations

import os
import re

from sortie.model import ProcessIdentity
from sortie.resources.process_identity import identity_of

PREFIX = "sortie-"
_NAME = re.compile(r"sortie-(?:[0-9a-f]+-)?([0-9]+)\.([0-9]+)-.*", re.ASCII)
_PER_SECOND = 1000


def own_life() -> str:
    """Return a word for the life of this process, which no other has ever."""
    return _word_of(identity_of(os.getpid()))


def is_over(name: str) -> bool:
    """Tell whether the process that a name tells of has ended."""
    found = _NAME.fullmatch(name)
    if found is None:
        return True
    try:
        return _word_of(identity_of(int(found[1]))) != f"{found[1]}.{found[2]}"
    except OSError:
        return True


def _word_of(identity: ProcessIdentity) -> str:
    return f"{identity.pid}.{round(identity.started_at * _PER_SECOND)}"
