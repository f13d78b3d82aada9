"""Build the command line of one headless turn of Claude Code."""

from __future__ import annotations

from collections.abc import Iterator

from sortie.agents.claude_code.settings import ClaudeCodeSettings
from sortie.model.invocation import Invocation, prompt_invocation

_ALWAYS = ("-p", "--output-format", "stream-json", "--verbose", "--include-partial-messages")

_FLAGS = {
    "model": "--model",
    "fallback_model": "--fallback-model",
    "max_turns": "--max-turns",
    "max_budget_usd": "--max-budget-usd",
    "effort": "--effort",
    "allowed_tools": "--allowedTools",
    "disallowed_tools": "--disallowedTools",
    "system_prompt": "--append-system-prompt",
    "mcp_config": "--mcp-config",
}


def turn(settings: ClaudeCodeSettings, prompt: str, *, session_id: str, resume: bool) -> Invocation:
    """Return how to run ``prompt`` as one turn of a conversation, a new one unless ``resume``.

    A prompt that begins with a slash gets a line feed before it, or Claude Code would take it for a
    command of its own.
    """
    arguments = [*_ALWAYS, "--resume" if resume else "--session-id", session_id]
    arguments += _options(settings)
    # Some options take every argument that follows, up to the next option.
    prompt = f"\n{prompt}" if prompt.startswith("/") else prompt
    return prompt_invocation(arguments, prompt, separated=True)


def _options(settings: ClaudeCodeSettings) -> Iterator[str]:
    if settings.permission_mode is None:
        yield "--dangerously-skip-permissions"
    else:
        yield from ("--permission-mode", settings.permission_mode)
    for name, flag in _FLAGS.items():
        value = getattr(settings, name)
        if value is not None:
            yield from (flag, f"{value:.12g}" if isinstance(value, float) else str(value))
    if not settings.session_persistence:
        yield "--no-session-persistence"
