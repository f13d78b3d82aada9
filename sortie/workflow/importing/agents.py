"""The agents of other programs: which of ours each becomes, and what its block says there."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from sortie.documents import Path
from sortie.workflow.importing.codex_block import import_codex
from sortie.workflow.importing.draft import Draft

_TOOLS = {
    **dict.fromkeys(("read", "list"), "read"),
    **dict.fromkeys(("glob", "grep", "codesearch"), "search"),
    **dict.fromkeys(("edit", "write", "patch"), "edit"),
    **dict.fromkeys(("webfetch", "websearch"), "fetch"),
    "bash": "execute",
}
"""Tools of OpenCode, and their kinds in ACP."""

_CLAUDE_CODE = (
    *("permission_mode", "model", "fallback_model", "max_turns", "max_budget_usd", "effort"),
    *("system_prompt", "mcp_config", "session_persistence", "allowed_tools", "disallowed_tools"),
)
_SERVER = "app-server"
"""The word that has Codex speak its own protocol."""

_OFFERED = ("effort", "agent", "variant", "thinking", "personality")


class OurAgent(Struct, frozen=True):
    """What runs an agent here: its kind, its program and what stands behind that."""

    kind: str
    program: str
    words: str = ""
    keeps_program: bool = True


AGENTS: Mapping[str, OurAgent] = {
    "claude-code": OurAgent("claude-code", "claude"),
    "codex": OurAgent("codex", "codex", "app-server"),
    "copilot-cli": OurAgent("acp", "copilot", "--acp"),
    "opencode": OurAgent("acp", "opencode", "acp"),
    "agent-client-protocol": OurAgent("acp", ""),
    "kiro": OurAgent("kiro", "kiro-cli", keeps_program=False),
    "mock": OurAgent("kiro", "sortie-kiro-sim", keeps_program=False),
}
"""The agents of Go's program; Symphony's is ``codex``."""


def import_agent(draft: Draft, kind: str, at: Path, command: Path, to: Path = ()) -> None:
    """Write ``agent.kind`` and ``agent.command``, which stand at ``at`` and ``command``."""
    ours = AGENTS.get(kind)
    if ours is None:
        draft.lose(at, "is no agent that is known here; set agent.kind and agent.command")
        draft.lose(command, "see agent.kind")
        return
    why = "" if ours.kind == kind else f"{kind} is run as {ours.kind} here"
    draft.change(at, (*to, "agent", "kind"), ours.kind, why)
    given = draft.old(*command) if command else None  # a rule has none
    if kind in ("claude-code", "agent-client-protocol"):
        if given is not None:
            draft.change(command, (*to, "agent", "command"), given, "")
        return
    words = given.split() if isinstance(given, str) else list(given or ())
    if kind == "codex" and (given is None or _SERVER in words):
        if given is not None:
            draft.change(command, (*to, "agent", "command"), given, "")
        return
    program = words[0] if words and ours.keeps_program else ours.program
    made = f"{program} {ours.words}".strip()
    why = f"{kind} is started differently here"
    why += "; what stood behind the program is left out" if words[1:] else ""
    draft.change(command, (*to, "agent", "command"), made, why)


def import_block(draft: Draft, kind: str, at: Path, to: Path = ()) -> None:
    """Write the block of an agent, which stands at ``at``, as one of ours below ``to``."""
    ours = AGENTS[kind].kind
    if ours == "codex":
        import_codex(draft, at, (*to, "codex"))
        return
    block = draft.block(*at)
    for key, value in block.items():
        if ours == "claude-code" and key in _CLAUDE_CODE:
            is_list = key.endswith("allowed_tools") and isinstance(value, list)
            text = ",".join(map(str, value)) if is_list else value
            draft.change((*at, key), (*to, kind, key), text, "a list as one text" * is_list)
        elif ours == "acp" and key == "model":
            draft.change((*at, key), (*to, "acp", key), value, "")
        elif ours == "acp" and key in _OFFERED:
            draft.lose((*at, key), "set acp.options or acp.mode to what the agent offers")
        elif not _decides(kind, key):
            draft.lose(
                (*at, key), "set it in the agent's own configuration, if it has such a thing"
            )
    if ours == "kiro":
        draft.add((*to, "kiro", "trust_all_tools"), True, "nobody is asked there, either")
    permissions = _permissions(kind, block) if ours == "acp" else {}
    deciding = [key for key in block if _decides(kind, key)]
    why = "the rules say what an agent that asks is answered; see docs/agents/acp.md"
    for key in deciding:
        draft.tell_change((*at, key), "acp.permissions", why)
    if permissions and deciding:
        draft.put((*to, "acp", "permissions"), permissions)
    elif permissions:
        draft.add((*to, "acp", "permissions"), permissions, why)


def _decides(kind: str, key: str) -> bool:
    """Tell whether a key decides what an agent may do."""
    return key in {
        "opencode": ("dangerously_skip_permissions", "allowed_tools", "denied_tools"),
    }.get(kind, ())


def _permissions(kind: str, block: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return what an agent may do that did not have to ask."""
    allowed = {"default": "allow"}
    listed, denied = block.get("allowed_tools") or (), block.get("denied_tools") or ()
    if kind == "opencode" and (listed or denied):
        kinds = {_TOOLS.get(tool, "other"): "allow" for tool in listed} if listed else allowed
        return {"inside": {**kinds, **{_TOOLS.get(tool, "other"): "deny" for tool in denied}}}
    if kind == "opencode" and block.get("dangerously_skip_permissions") is False:
        return {}
    return {"inside": allowed}
