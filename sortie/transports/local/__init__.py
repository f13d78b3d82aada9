"""This machine: directories handled race-free, processes ended with all that descends from them."""

from sortie.transports.local.agent_limits import AgentLimits
from sortie.transports.local.cgroups import RunGroups
from sortie.transports.local.mark import UNMARKED, carry, mark_of_database
from sortie.transports.local.subreaper import become_subreaper
from sortie.transports.local.transport import LocalTransport

__all__ = [
    "UNMARKED",
    "AgentLimits",
    "LocalTransport",
    "RunGroups",
    "become_subreaper",
    "carry",
    "mark_of_database",
]
