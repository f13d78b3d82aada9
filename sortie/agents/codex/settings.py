"""The ``codex`` block of WORKFLOW.md, and what of the environment Codex is given."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StrictBool, StrictInt

from sortie.agents.permissions import PermissionRules
from sortie.config.values import Line, choice
from sortie.model.model_endpoints import ModelEndpoint

DEFAULT_COMMAND = "codex app-server"

KEY_NAMES = ("CODEX_API_KEY", "OPENAI_API_KEY")
"""Variables with a key of OpenAI's API; the first that is set counts."""

BASE_URL = "OPENAI_BASE_URL"
DEFAULT_BASE_URL = "https://api.openai.com/v1"

ENV_NAMES = (*KEY_NAMES, BASE_URL)
"""Variables that Codex on a remote host is handed."""

MODEL_ENDPOINT = ModelEndpoint(base_url=BASE_URL, default=DEFAULT_BASE_URL, keys=KEY_NAMES)

SANDBOXES = ("read-only", "workspace-write", "danger-full-access")
APPROVAL_POLICIES = ("untrusted", "on-request", "never")
FULL_ACCESS = "danger-full-access"


def _word(text: str) -> str:
    if text.startswith("-"):
        raise ValueError("must not begin with '-'")
    return text


Word = Annotated[Line, AfterValidator(_word)]


class CodexSettings(BaseModel):
    """How every thread is opened and what it may do; the keys are in this folder's README."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    model: Word | None = None
    effort: Word | None = None
    provider: Word | None = None
    sandbox: Annotated[str, choice(*SANDBOXES)] = "workspace-write"
    network: StrictBool = False
    write_git: StrictBool = True
    approval_policy: Annotated[str, choice(*APPROVAL_POLICIES)] = "on-request"
    permissions: PermissionRules = PermissionRules()
    resume: StrictBool = True
    start_timeout_ms: Annotated[StrictInt, Field(ge=1000, le=70_000)] = 60_000


class ReadingCodexSettings(CodexSettings):
    """With these Codex can only read, is given leave for nothing, and starts no servers of tools
    that its own configuration names."""


def read_only(settings: CodexSettings) -> ReadingCodexSettings:
    """Return the settings with which a session can only read."""
    kept = {name: getattr(settings, name) for name in settings.model_fields_set}
    return ReadingCodexSettings.model_validate(
        kept
        | {
            "sandbox": "read-only",
            "network": False,
            "approval_policy": "on-request",
            "permissions": PermissionRules(outside={"default": "deny"}, inside={"default": "deny"}),
        }
    )


def warn(settings: CodexSettings) -> Iterator[tuple[str, str]]:
    """Yield what ``validate`` should warn about."""
    if "permissions" in settings.model_fields_set and not _asks(settings):
        yield (
            "codex.permissions",
            f"with codex.sandbox {settings.sandbox} and codex.approval_policy"
            f" {settings.approval_policy} Codex asks about nothing: these rules are not used",
        )
    if settings.network and settings.sandbox != "workspace-write":
        yield (
            "codex.network",
            f"goes for the sandbox workspace-write alone, not for {settings.sandbox}",
        )


def _asks(settings: CodexSettings) -> bool:
    """Tell whether Codex asks before it does what its sandbox does not allow."""
    if settings.approval_policy == "untrusted":
        return True
    return settings.approval_policy == "on-request" and settings.sandbox != FULL_ACCESS
