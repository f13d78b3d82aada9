"""The block ``codex`` of other programs, which speak with Codex as the kind ``codex`` here does."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sortie.documents import Path
from sortie.workflow.importing.draft import Draft

_ELSEWHERE = ("command", "turn_timeout_ms", "read_timeout_ms", "stall_timeout_ms")
"""Keys of Symphony's block that are keys of ``agent`` here."""

_SANDBOXES = {
    "readonly": "read-only",
    "workspacewrite": "workspace-write",
    "dangerfullaccess": "danger-full-access",
    "externalsandbox": "danger-full-access",
}
_POLICIES = ("untrusted", "on-request", "never")


def import_codex(draft: Draft, at: Path, to: Path) -> None:
    """Write the block that stands at ``at`` as ours at ``to``."""
    block = {key: each for key, each in draft.block(*at).items() if key not in _ELSEWHERE}
    turn = block.get("turn_sandbox_policy")
    for key, value in block.items():
        place = (*at, key)
        if key in ("model", "effort") or (key == "approval_policy" and value in _POLICIES):
            draft.change(place, (*to, key), value, "")
        elif key == "thread_sandbox" and (sandbox := _sandbox(value)) and turn is None:
            draft.change(place, (*to, "sandbox"), sandbox, "")
        elif key == "turn_sandbox_policy" and (sandbox := _sandbox(value)):
            draft.change(place, (*to, "sandbox"), sandbox, "one sandbox goes for all turns here")
            if isinstance(value, Mapping) and value.get("networkAccess") is True:
                draft.add((*to, "network"), True, "its turns have the network")
        elif key == "thread_sandbox" and turn is not None:
            draft.lose(place, "that of the turns is codex.sandbox")
        else:
            draft.lose(place, "has no counterpart in the block codex; see docs/agents/codex.md")


def _sandbox(value: Any) -> str | None:
    """Return our word for a sandbox, None where there is none."""
    named = value.get("type") if isinstance(value, Mapping) else value
    return _SANDBOXES.get(str(named).lower().replace("-", ""))
