"""The pure scheduler: events and a clock reading in, decisions out.

Nothing in this package performs I/O, reads a clock, draws a random number or imports trio.
"""

from sortie.scheduler.candidates import GateVerdict
from sortie.scheduler.checkpoint import Checkpoint
from sortie.scheduler.core import Scheduler
from sortie.scheduler.decisions import Decision, Effect, Note
from sortie.scheduler.events import Event
from sortie.scheduler.explanation import Explanation
from sortie.scheduler.identifiers import RunIds
from sortie.scheduler.memory import Memory
from sortie.scheduler.policy import Policy, policy_of
from sortie.scheduler.records import Record
from sortie.scheduler.snapshot import Backlog, Snapshot

__all__ = [
    "Backlog",
    "Checkpoint",
    "Decision",
    "Effect",
    "Event",
    "Explanation",
    "Memory",
    "Note",
    "Policy",
    "Record",
    "RunIds",
    "Scheduler",
    "Snapshot",
    "GateVerdict",
    "policy_of",
]
