"""What this process takes from its machine (threads, descriptors, memory), and shortages of it."""

from importlib import import_module
from typing import TYPE_CHECKING

from sortie.resources.shortages import Resource, Shortage, shortage_behind

if TYPE_CHECKING:
    from sortie.resources.register import Shortages, keep_account, note
    from sortie.resources.threads import (
        FIRST_PAUSE,
        LONGEST_PAUSE,
        patiently,
        run_in_thread,
    )
else:
    _HOMES = {
        "register": ("Shortages", "keep_account", "note"),
        "threads": (
            "FIRST_PAUSE",
            "LONGEST_PAUSE",
            "patiently",
            "run_in_thread",
        ),
    }

    def __getattr__(name: str) -> object:
        """Import what needs trio when it is asked for: commands that only read files do not."""
        for module, names in _HOMES.items():
            if name in names:
                return getattr(import_module(f"{__name__}.{module}"), name)
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


__all__ = [
    "FIRST_PAUSE",
    "LONGEST_PAUSE",
    "Resource",
    "Shortage",
    "Shortages",
    "keep_account",
    "note",
    "patiently",
    "run_in_thread",
    "shortage_behind",
]
