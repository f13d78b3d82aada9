"""The imperative shell: the only owner of the scheduler, performing what it decides."""

from sortie.orchestrator.context import OrchestratorContext
from sortie.orchestrator.loop import Orchestrator

__all__ = ["OrchestratorContext", "Orchestrator"]
