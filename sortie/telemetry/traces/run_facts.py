"""How each kind of fact about a run changes the spans of the run."""

from __future__ import annotations

from collections.abc import Callable

from sortie.telemetry import facts
from sortie.telemetry.traces.run_spans import RunSpans


def tell(
    run: RunSpans,
    fact: facts.RunFact | facts.HookCompleted,
    now: int,
    provider_of: Callable[[str], str],
) -> None:
    """Change the spans of a run by a fact about it; ``provider_of`` as in TracedWorkflow."""
    match fact:
        case facts.RunPhaseChanged(phase=phase):
            run.enter(phase, now)
        case facts.SessionStarted() | facts.SessionNamed():
            run.session(fact.role, fact.session_id)
        case facts.SessionRefused():
            run.refused(fact, now)
        case facts.TurnBegan():
            run.began_turn(fact, provider_of(fact.agent), now)
        case facts.TurnCompleted():
            run.ended_turn(fact, now)
        case facts.DeliveryAdvanced():
            run.advanced(fact, now)
        case facts.CommandVerified():
            run.verified(fact, now)
        case facts.ReviewFinished():
            run.reviewed(fact, now)
        case facts.HookCompleted():
            run.hook(fact, now)
        case facts.RunStopping(reason=reason):
            run.root.tell("run.stopping", now, reason=reason.value)
        case facts.ContainerStarted(image=image):
            run.root.attributes["container.image.name"] = image
        case facts.WorkspaceReady(created=created):
            run.root.attributes["sortie.workspace.created"] = created
        case _:
            _tell_turn(run, fact, now)


def _tell_turn(run: RunSpans, fact: facts.RunFact, now: int) -> None:
    """Change the spans of the turn under way, if there is one."""
    if (turn := run.turn) is None:
        return
    match fact:
        case facts.ToolCallStarted():
            turn.uses(fact, now)
        case facts.ToolCallEnded():
            turn.used(fact, now)
        case facts.ModelAnswerTimed():
            turn.model_answered(fact, now)
        case facts.AgentUsed():
            turn.consumed(fact)
        case facts.ToolsTraced(model=model):
            turn.traced(model)
        case facts.PermissionAnswered(answer=answer):
            turn.span.tell("permission.answered", now, answer=answer)
        case facts.AgentAnswered(seconds=seconds):
            turn.span.tell("agent.answered", now, seconds=seconds)
