"""The ``acp`` block of WORKFLOW.md."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Annotated

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    PlainSerializer,
    StrictBool,
    StrictInt,
    StrictStr,
)

from sortie.agents.permissions import PermissionRules
from sortie.config.values import Frozen

DEFAULT_COMMAND = "opencode acp"

ASK_NOTHING = frozenset(
    {"bypassPermissions", "yolo", "full-access", "agent-full-access", "autopilot"}
)
"""What modes are called that ask about nothing, whichever agent has them."""

ALLOW_ALL = "allow_all"
"""An option of Copilot: with "on" it asks about nothing, whatever its mode."""


def _word(value: str) -> str:
    word = value.strip()
    if not word:
        raise ValueError("must not be empty")
    if not word.isprintable():
        raise ValueError("must not contain control characters")
    return word


Word = Annotated[StrictStr, AfterValidator(_word)]


_freeze_options: Callable[[Mapping[str, bool | str]], Mapping[str, bool | str]] = Frozen

Options = Annotated[
    Mapping[Word, StrictBool | Word],
    AfterValidator(_freeze_options),
    PlainSerializer(dict, return_type=dict[str, bool | str]),
]
"""Values of the agent's own options by their ids."""


class AcpSettings(BaseModel):
    """How every session is opened and what it may do; the keys are in this folder's README."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    model: Word | None = None
    mode: Word | None = None
    options: Options = Frozen()
    permissions: PermissionRules = PermissionRules()
    resume: StrictBool = True
    start_timeout_ms: Annotated[StrictInt, Field(ge=1000, le=70_000)] = 60_000
    memory_limit_mb: Annotated[StrictInt, Field(ge=0)] = 2000


def read_only(settings: AcpSettings) -> AcpSettings:
    """Return the settings with which everything is refused but reading and searching inside.

    The mode is left to the session, which sets one that asks about what is refused.
    """
    options = {key: value for key, value in settings.options.items() if key != ALLOW_ALL}
    return settings.model_copy(
        update={"permissions": PermissionRules(), "mode": None, "options": Frozen(options)}
    )


def warn(settings: AcpSettings) -> Sequence[tuple[str, str]]:
    """Return what ``validate`` should warn about."""
    if settings.permissions != PermissionRules():
        return _contradiction(settings)
    return (
        (
            "acp.permissions",
            "not set: an agent that asks may read and search in the workspace, and is refused"
            " everything else; set permissions.inside to {default: allow} to let it work",
        ),
    )


def _contradiction(settings: AcpSettings) -> Sequence[tuple[str, str]]:
    """Return that the settings choose a mode which asks nothing, and deny something."""
    rules = settings.permissions
    given = (*rules.inside.values(), *rules.outside.values())
    denies = "deny" in given or "ask" in given
    if not denies or settings.mode not in ASK_NOTHING:
        return ()
    message = (
        f"{settings.mode} asks about nothing, so that what acp.permissions denies, or has people"
        " asked about, would be done: no agent is run in it; leave acp.mode out, or allow all"
    )
    return (("acp.mode", message),)
