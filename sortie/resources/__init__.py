"""What this process takes from its machine (threads, descriptors, memory), and shortages of it."""

from sortie.resources.register import Shortages, keep_account, note
from sortie.resources.shortages import Resource, Shortage, shortage_behind
from sortie.resources.threads import FIRST_PAUSE, LONGEST_PAUSE, patiently, run_in_thread

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
