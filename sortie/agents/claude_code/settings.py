"""The ``claude-code`` block of WORKFLOW.md, and what of the environment Claude Code reads."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, StrictBool

from sortie.config.report import Finding
from sortie.config.settings import AgentSettings
from sortie.config.values import Line, PathText, Script, choice, needs, whole
from sortie.model.model_endpoints import ModelEndpoint

DEFAULT_COMMAND = "claude"

CLAUDE_SECRETS = (
    "ANTHROPIC_API_KEY",
    "ANTHROPIC_AUTH_TOKEN",
    "CLAUDE_CODE_OAUTH_TOKEN",
    "AWS_BEARER_TOKEN_BEDROCK",
    "AWS_SECRET_ACCESS_KEY",
    "AWS_SESSION_TOKEN",
)
"""Variables whose values are hidden wherever Claude Code prints them."""

ENV_NAMES = (
    "ANTHROPIC_API_KEY",
    "ANTHROPIC_AUTH_TOKEN",
    "ANTHROPIC_BASE_URL",
    "ANTHROPIC_VERTEX_PROJECT_ID",
    "CLAUDE_CODE_MAX_RETRIES",
    "CLAUDE_CODE_OAUTH_TOKEN",
    "CLAUDE_CODE_USE_BEDROCK",
    "CLAUDE_CODE_USE_VERTEX",
    "CLOUD_ML_REGION",
)
"""Variables that Claude Code on a remote host is handed.

The variables of AWS are not among them: they give access to more than a model.
"""

MODEL_ENDPOINT = ModelEndpoint(
    base_url="ANTHROPIC_BASE_URL",
    default="https://api.anthropic.com",
    keys=("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN"),
    unless=("CLAUDE_CODE_USE_BEDROCK", "CLAUDE_CODE_USE_VERTEX", "CLAUDE_CODE_USE_FOUNDRY"),
)

PERMISSION_MODES = (
    "acceptEdits",
    "auto",
    "bypassPermissions",
    "default",
    "dontAsk",
    "manual",
    "plan",
)
_ASKING = frozenset({"default", "manual", "plan"})


def _word(text: str) -> str:
    if text.startswith("-"):
        raise ValueError("must not begin with '-': claude would take it for an option")
    return text


def _amount(value: Any) -> Any:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if not is_number or not math.isfinite(value) or value <= 0:
        raise needs("a number above 0")
    return value


Word = Annotated[Line, AfterValidator(_word)]


class ClaudeCodeSettings(BaseModel):
    """What every turn is run with; the keys are explained in this folder's README."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    permission_mode: Annotated[str, choice(*PERMISSION_MODES)] | None = None
    model: Word | None = None
    fallback_model: Word | None = None
    max_turns: Annotated[int, whole(1)] | None = None
    max_budget_usd: Annotated[float, BeforeValidator(_amount)] | None = None
    effort: Annotated[str, choice("low", "medium", "high", "xhigh", "max")] | None = None
    allowed_tools: Word | None = None
    disallowed_tools: Word | None = None
    system_prompt: Script | None = None
    mcp_config: PathText | None = None
    session_persistence: StrictBool = True


READING_TOOLS = "Read,Grep,Glob"


class ReadingSettings(ClaudeCodeSettings):
    """With these Claude Code has no other tools than READING_TOOLS, and takes neither settings,
    hooks nor servers from the files that it reads."""


def read_only(settings: ClaudeCodeSettings) -> ReadingSettings:
    """Return the settings with which a session can only read.

    Its conversation is kept: a second turn goes on with it.
    """
    kept = {name: getattr(settings, name) for name in settings.model_fields_set}
    return ReadingSettings.model_construct(
        **kept
        | {
            "permission_mode": "dontAsk",
            "allowed_tools": READING_TOOLS,
            "disallowed_tools": "Bash,Edit,Write,NotebookEdit,WebFetch,WebSearch,Task",
            "mcp_config": None,
            "session_persistence": True,
        }
    )


def warn(settings: ClaudeCodeSettings) -> Iterator[tuple[str, str]]:
    """Yield what ``validate`` should warn about."""
    mode, key = settings.permission_mode, "claude-code.permission_mode"
    if mode is None:
        yield (
            key,
            "is not set: every tool call is approved by the deprecated"
            " --dangerously-skip-permissions; set it to bypassPermissions if that is meant",
        )
    elif mode in _ASKING:
        yield (
            key,
            f'"{mode}" asks before it does things, and nobody is there to answer: such a tool call'
            " is refused; set it to acceptEdits or bypassPermissions",
        )


def check(agent: AgentSettings, settings: ClaudeCodeSettings) -> Iterator[Finding]:
    """Yield what is wrong with the block beside the settings of ``agent``."""
    if settings.session_persistence or agent.max_turns == 1:
        return
    message = (
        "is false, so that no turn could go on with the one before it; it needs agent.max_turns: 1,"
        f" not {agent.max_turns}"
    )
    path = ("claude-code", "session_persistence")
    yield Finding(path=path, message=message, needs=(("agent", "max_turns"),))
