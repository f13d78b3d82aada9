"""What Kiro's two engines tell each in its own way: v2 under ``_kiro.dev``, v3 under ``_kiro``."""

from __future__ import annotations

from typing import Any

from sortie.kiro.simulator.acp.link import Link
from sortie.kiro.simulator.acp.session import Session, agents
from sortie.kiro.simulator.exchange import Exchange

_COMMANDS = ("/agent", "/chat", "/clear", "/compact", "/context", "/model", "/tools")


def capabilities(engine: str) -> dict[str, Any]:
    """Return what an engine says that it can do."""
    can: dict[str, Any] = {
        "loadSession": True,
        "promptCapabilities": {"image": True, "audio": False, "embeddedContext": engine == "v3"},
        "mcpCapabilities": {"http": engine == "v3", "sse": engine == "v3"},
        "sessionCapabilities": {},
    }
    if engine == "v3":
        can["sessionCapabilities"] = {"list": {}, "close": {}, "delete": {}}
    return can


def tell_opened(link: Link, session: Session, environment: Any) -> None:
    """Tell what an engine tells of a session once it is open."""
    if session.engine == "v3":
        link.tell("_kiro/tools/didChange", {"sessionId": session.id})
        return
    commands = [{"name": name, "description": ""} for name in _COMMANDS]
    told = {"sessionId": session.id, "commands": commands}
    link.tell(
        "_kiro.dev/commands/available", {**told, "agents": agents(session.directory, environment)}
    )


def tell_missing_agent(link: Link, session: Session, name: str) -> None:
    """Tell that the agent that was asked for is not there, and another one works."""
    told = {"sessionId": session.id, "requestedAgent": name, "fallbackAgent": session.agent.name}
    link.tell("_kiro.dev/agent/not_found", told)


def tell_used(link: Link, session: Session, exchange: Exchange, milliseconds: int) -> None:
    """Tell what a turn has used, before it is answered."""
    if session.engine == "v3":
        spent = {"usage": exchange.spent, "unit": "credit", "unitPlural": "credits"}
        _info(link, session, {"kind": "turn_completion", "promptTurnSummaries": [spent]})
        return
    metered = {"value": exchange.spent, "unit": "credit", "unitPlural": "credits"}
    link.tell(
        "_kiro.dev/metadata",
        {
            "sessionId": session.id,
            "contextUsagePercentage": exchange.context_share,
            "meteringUsage": [metered],
            "turnDurationMs": milliseconds,
        },
    )


def tell_context(link: Link, session: Session, share: float) -> None:
    """Tell how full the context is; engine v3 does so when the turn is answered already."""
    if session.engine == "v3":
        _info(link, session, {"kind": "context_usage", "contextUsagePercentage": share})


def _info(link: Link, session: Session, told: dict[str, Any]) -> None:
    update = {"sessionUpdate": "session_info_update", "_meta": {"kiro": told}}
    link.tell("session/update", {"sessionId": session.id, "update": update})
