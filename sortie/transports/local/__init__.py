"""This machine: directories handled race-free, processes ended with all that descends from them."""

from sortie.resources.prctl import become_subreaper
from sortie.transports.local.agent_limits import AgentLimits
from sortie.transports.local.cgroups import RunGroups
from sortie.transports.local.isolation import (
    IsolationInForce,
    establish_isolation,
    plain_fork_server,
    try_isolation,
)
from sortie.transports.local.mark import UNMARKED, carry, mark_of_database
from sortie.transports.local.transport import LocalTransport

__all__ = [
    "UNMARKED",
    "AgentLimits",
    "IsolationInForce",
    "LocalTransport",
    "RunGroups",
    "become_subreaper",
    "carry",
    "establish_isolation",
    "mark_of_database",
    "plain_fork_server",
    "try_isolation",
]
