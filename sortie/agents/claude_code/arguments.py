"""Build the command line of one headless turn of Claude Code."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from sortie.agents.claude_code.settings import ClaudeCodeSettings
from sortie.model.texts import UNUSABLE

PROMPT_ARGUMENT_LIMIT = 96 * 1024
"""Bytes of UTF-8 that a prompt on the command line may have; Linux refuses 128 KiB and more."""

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


@dataclass(frozen=True, slots=True, kw_only=True)
class Invocation:
    """What follows the program's name, and what its stdin holds; None is an empty stdin."""

    arguments: tuple[str, ...] = field(repr=False)
    stdin: bytes | None = field(default=None, repr=False)


def turn(settings: ClaudeCodeSettings, prompt: str, *, session_id: str, resume: bool) -> Invocation:
    """Return how to run ``prompt`` as one turn of a conversation, a new one unless ``resume``.

    A prompt over PROMPT_ARGUMENT_LIMIT goes through stdin. What no argument can hold (NUL, lone
    surrogates) is replaced. A prompt that begins with a slash gets a line feed before it: it
    would be taken for a command of Claude Code's own.
    """
    arguments = [*_ALWAYS, "--resume" if resume else "--session-id", session_id]
    arguments += _options(settings)
    text = UNUSABLE.sub("\ufffd", prompt)
    encoded = (f"\n{text}" if text.startswith("/") else text).encode()
    if len(encoded) > PROMPT_ARGUMENT_LIMIT:
        return Invocation(arguments=tuple(arguments), stdin=encoded)
    # Some options take all that follows, up to the next one.
    return Invocation(arguments=(*arguments, "--", encoded.decode()))


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
