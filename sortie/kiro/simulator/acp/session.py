"""One conversation that a client has open, and what it can be set to."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from sortie.kiro.simulator.agent_file import Agent, AgentFileError, load_agent
from sortie.kiro.simulator.exchange import new_id
from sortie.kiro.simulator.hooks import Hooks
from sortie.kiro.simulator.keeping import kiro_home
from sortie.kiro.simulator.store_v3 import PREFIX

MODELS = ("auto", "claude-sonnet-4.5", "claude-haiku-4.5")
"""What is offered; other names are taken as well."""


class Session:
    """A conversation in a directory; ``added`` is what hooks of its agent's beginning have said."""

    def __init__(self, engine: str, directory: str, agent: Agent, session_id: str = "") -> None:
        self.engine = engine
        self.directory = directory
        self.agent = agent
        self.id = session_id or (PREFIX if engine == "v3" else "") + new_id()
        self.model: str | None = None
        self.mode = "vibe"
        self.autopilot = True
        self.added = ""
        self.allowed: set[str] = set()

    def hooks(self, environment: Mapping[str, str], warn: Any) -> Hooks:
        """Return the hooks of its agent, in its directory."""
        return Hooks(self.agent.hooks, self.directory, environment, warn)

    def offers(self, environment: Mapping[str, str]) -> dict[str, Any]:
        """Return what can be chosen in it: agents are modes of engine v2."""
        model = self.model or self.agent.model or MODELS[0]
        if self.engine == "v3":
            return {"configOptions": self.options()}
        names = [self.agent.name, *agents(self.directory, environment)]
        modes = [{"id": name, "name": name} for name in dict.fromkeys(names)]
        models = [{"modelId": each, "name": each} for each in dict.fromkeys((model, *MODELS))]
        return {
            "modes": {"currentModeId": self.agent.name, "availableModes": modes},
            "models": {"currentModelId": model, "availableModels": models},
        }

    def options(self) -> list[dict[str, Any]]:
        """Return the options of engine v3."""
        model = self.model or MODELS[0]
        return [
            _option("mode", "mode", self.mode, ("vibe", "spec", "plan")),
            {
                "id": "autopilot",
                "name": "Autopilot",
                "type": "boolean",
                "currentValue": self.autopilot,
            },
            _option("model", "model", model, tuple(dict.fromkeys((model, *MODELS)))),
        ]


def _option(name: str, category: str, value: str, choices: tuple[str, ...]) -> dict[str, Any]:
    return {
        "id": name,
        "name": name.capitalize(),
        "category": category,
        "type": "select",
        "currentValue": value,
        "options": [{"value": each, "name": each} for each in choices],
    }


def agents(directory: str, environment: Mapping[str, str]) -> list[str]:
    """Return the names of the agents that can be had in a directory."""
    names = ["kiro_default"]
    for folder in (os.path.join(directory, ".kiro"), kiro_home(environment)):
        try:
            found = sorted(os.listdir(os.path.join(folder, "agents")))
        except OSError:
            continue
        names += [name.removesuffix(".json") for name in found if name.endswith(".json")]
    return names


def agent_named(name: str, directory: str, environment: Mapping[str, str]) -> Agent | None:
    """Return an agent, None where there is none that is any good."""
    try:
        return load_agent(name, directory, environment)
    except AgentFileError:
        return None
