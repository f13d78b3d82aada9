"""The imperative shell: the only owner of the scheduler, performing what it decides."""

from sortie.orchestrator.loop import Orchestrator
from sortie.orchestrator.office import Office

__all__ = ["Office", "Orchestrator"]
