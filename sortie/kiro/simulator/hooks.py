"""Commands that run around what an agent does, as its file has them.

A command gets JSON on its stdin. What it prints is added to the model's context before a prompt;
an exit with 2 before a tool keeps that from being used. Any other failure is a warning.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any

    from sortie.kiro.simulator.exchange import ToolUse

EVENTS = ("agentSpawn", "userPromptSubmit", "preToolUse", "postToolUse", "stop")

DEFAULT_TIMEOUT_MS = 30_000
PROMPT_LIMIT = 4096
"""Bytes of the prompt that a command has in ``USER_PROMPT``."""

OUTPUT_LIMIT = 10 * 1024
"""Bytes of what a command prints that are taken, unless its hook says otherwise."""

BLOCKED = 2
"""The exit status by which a command before a tool keeps it from being used."""


class Hook:
    """A command of an agent's file."""

    def __init__(self, told: Mapping[str, Any]) -> None:
        self.command: str = told["command"]
        self.timeout: float = told.get("timeout_ms", DEFAULT_TIMEOUT_MS) / 1000
        self.matcher: str | None = told.get("matcher")
        self.output_limit: int = told.get("max_output_size", OUTPUT_LIMIT)


class Hooks:
    """The hooks of one agent in a directory; ``warn`` is told of those that fail."""

    def __init__(
        self,
        hooks: Mapping[str, Sequence[Hook]],
        directory: str,
        environment: Mapping[str, str],
        warn: Callable[[str], None],
    ) -> None:
        self._hooks = hooks
        self._directory = directory
        self._environment = environment
        self._warn = warn

    def spawned(self) -> str:
        """Run those of an agent that begins; return what they add to its context."""
        return self._added("agentSpawn", {})

    def submitted(self, prompt: str) -> str:
        """Run those of a prompt; return what they add to it."""
        return self._added("userPromptSubmit", {"prompt": prompt})

    def before(self, use: ToolUse, prompt: str) -> str | None:
        """Run those before a tool; return why it is not to be used, None where it may be."""
        for hook in self._of("preToolUse", use.name):
            status, _, err = self._run(hook, "preToolUse", {"prompt": prompt, **_about(use)})
            if status == BLOCKED:
                return err.strip() or f"{hook.command} does not allow it"
        return None

    def after(self, use: ToolUse, prompt: str) -> None:
        """Run those after a tool that was used."""
        from sortie.kiro.simulator.exchange import SUCCESS

        done: dict[str, object] = {"success": use.status == SUCCESS}
        done |= {"result": [use.result]} if use.status == SUCCESS else {"error": use.result}
        for hook in self._of("postToolUse", use.name):
            told = {"prompt": prompt, **_about(use), "tool_response": done}
            self._run(hook, "postToolUse", told)

    def stopped(self, prompt: str) -> None:
        """Run those of a turn that has ended."""
        for hook in self._of("stop"):
            self._run(hook, "stop", {"prompt": prompt})

    def _added(self, event: str, told: Mapping[str, object]) -> str:
        ran = [self._run(hook, event, told) for hook in self._of(event)]
        return "\n".join(out.rstrip("\n") for status, out, _ in ran if status == 0 and out.strip())

    def _of(self, event: str, tool: str | None = None) -> list[Hook]:
        hooks = list(self._hooks.get(event, ()))
        if tool is None or not hooks:
            return hooks
        from sortie.kiro.simulator.agent_file import matches

        return [hook for hook in hooks if hook.matcher is None or matches(hook.matcher, tool)]

    def _run(
        self, hook: Hook, event: str, told: Mapping[str, object]
    ) -> tuple[int | None, str, str]:
        """Run one command; return its exit status, None for one that ran too long, and outputs."""
        from sortie.kiro.simulator.hook_process import run_hook

        told = {"hook_event_name": event, "cwd": self._directory, **told}
        environment = dict(self._environment)
        if isinstance(prompt := told.get("prompt"), str):
            shown = prompt.replace("\0", "").encode(errors="replace")[:PROMPT_LIMIT]
            environment["USER_PROMPT"] = shown.decode(errors="ignore")
        status, out, err = run_hook(hook, told, self._directory, environment)
        if status is None:
            self._warn(f"{event} hook timed out after {hook.timeout:g} s: {hook.command}")
        elif status != 0 and not (status == BLOCKED and event == "preToolUse"):
            said = f": {err.strip()}" if err.strip() else ""
            self._warn(f"{event} hook exited with {status}: {hook.command}{said}")
        return status, out, err


def _about(use: ToolUse) -> dict[str, object]:
    return {"tool_name": use.name, "tool_input": dict(use.args)}
