"""What an agent is answered that asks whether it may: the rules of WORKFLOW.md; pure."""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Mapping
from typing import Annotated, Literal, get_args

from msgspec import Struct
from pydantic import AfterValidator, BaseModel, ConfigDict, PlainSerializer, StrictStr

from sortie.config.values import Frozen

Ruling = Literal["allow", "deny", "ask"]
ToolKind = Literal[
    "read",
    "edit",
    "delete",
    "move",
    "search",
    "execute",
    "think",
    "fetch",
    "switch_mode",
    "other",
]
TOOL_KINDS: tuple[str, ...] = get_args(ToolKind)


def _kind(value: str) -> str:
    if value != "default" and value not in TOOL_KINDS:
        raise ValueError(f"must be default or a kind of tool: {', '.join(TOOL_KINDS)}")
    return value


Kind = Annotated[StrictStr, AfterValidator(_kind)]

_freeze_rulings: Callable[[Mapping[str, Ruling]], Mapping[str, Ruling]] = Frozen

_READING: Mapping[str, Ruling] = Frozen({"read": "allow", "search": "allow", "think": "allow"})

Rulings = Annotated[
    Mapping[Kind, Ruling],
    AfterValidator(_freeze_rulings),
    PlainSerializer(dict, return_type=dict[str, Ruling]),
]
"""What is answered to each kind of tool; ``default`` goes for those that are not named."""


class PermissionRules(BaseModel):
    """What is answered where all paths of a call are inside of the workspace, and where not."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    inside: Rulings = _READING
    outside: Rulings = Frozen()


class PermissionRuling(Struct, frozen=True):
    """Whether something may be done; ``reason`` names the rule, as ``by permissions.inside``.
    ``asks``: only when people have allowed it."""

    allowed: bool
    reason: str
    asks: bool = False


def ruling_for(kind: str, rules: PermissionRules, *, outside: bool) -> PermissionRuling:
    """Return what the rules say of a tool of a kind; one that is unknown is ``other``."""
    rulings = rules.outside if outside else rules.inside
    named = kind if kind in TOOL_KINDS else "other"
    ruling = rulings.get(named) or rulings.get("default") or "deny"
    place = "outside" if outside else "inside"
    reason = f"by permissions.{place} for {kind}"
    return PermissionRuling(ruling == "allow", reason, asks=ruling == "ask")


def leaves_to_people(rules: PermissionRules) -> str | None:
    """Return the key by which people are asked about something, None where they are not."""
    asks = "ask" in (*rules.inside.values(), *rules.outside.values())
    return "permissions" if asks else None


def is_inside(path: str, workspace: str) -> bool:
    """Tell whether a path, as it is written, is in a workspace; links are not looked at."""
    if path.startswith("~"):
        return False
    whole = posixpath.normpath(posixpath.join(workspace, path))
    root = posixpath.normpath(workspace)
    return whole == root or whole.startswith(root.rstrip("/") + "/")
