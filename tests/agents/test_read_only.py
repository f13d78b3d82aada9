"""The blocks with which sessions can only read, made of those with which agents work."""

from __future__ import annotations

from itertools import pairwise

from sortie.agents import ADAPTERS
from sortie.agents.acp.asking import denied_by
from sortie.agents.acp.settings import AcpSettings
from sortie.agents.acp.settings import read_only as acp
from sortie.agents.claude_code.agent import turn
from sortie.agents.claude_code.settings import ClaudeCodeSettings
from sortie.agents.claude_code.settings import read_only as claude
from sortie.agents.codex.settings import CodexSettings
from sortie.agents.codex.settings import read_only as codex
from sortie.agents.kiro.settings import KiroSettings
from sortie.agents.kiro.settings import read_only as kiro
from sortie.agents.permissions import PermissionRules, ruling_for


def test_every_built_in_agent_can_be_kept_to_reading() -> None:
    """Its adapter says how."""
    for kind in ADAPTERS.built_in:
        assert ADAPTERS.load(kind).read_only is not None


def test_kiro_trusts_tools_that_read() -> None:
    """No others, and no custom agent, which may trust more."""
    block = KiroSettings(model="m", trust_all_tools=True, agent="builder")

    assert kiro(block) == KiroSettings(model="m", trust_tools=("read", "grep", "glob"))


def test_claude_code_has_tools_that_read() -> None:
    """No others, no settings of the repository, and no servers."""
    block = ClaudeCodeSettings(
        permission_mode="bypassPermissions",
        model="m",
        allowed_tools="Bash",
        mcp_config="/servers.json",
        session_persistence=False,
        effort="high",
    )

    words = turn(claude(block), "judge", session_id="1", resume=False).arguments
    options = dict(pairwise(words))
    assert options["--tools"] == options["--allowedTools"] == "Read,Grep,Glob"
    assert options["--permission-mode"] == "dontAsk"
    assert (options["--model"], options["--effort"]) == ("m", "high")
    assert options["--setting-sources"] == "user"
    assert "--strict-mcp-config" in words
    assert _FORBIDDEN.isdisjoint(words)
    assert words[-2:] == ("--", "judge")


_FORBIDDEN = {"--mcp-config", "--no-session-persistence", "--dangerously-skip-permissions"}


def test_codex_has_a_sandbox_in_which_it_reads() -> None:
    """And no leave for anything, whatever the block gives."""
    every = PermissionRules(inside={"default": "allow"}, outside={"default": "allow"})
    block = CodexSettings(
        model="m",
        sandbox="danger-full-access",
        network=True,
        approval_policy="never",
        permissions=every,
    )

    found = codex(block)

    assert (found.model, found.sandbox, found.network) == ("m", "read-only", False)
    kinds = ("read", "edit", "execute", "fetch", "other")
    rulings = [ruling_for(k, found.permissions, outside=o) for k in kinds for o in (False, True)]
    assert not any(ruling.allowed for ruling in rulings)


def test_acp_refuses_all_but_reading() -> None:
    """Also where the block names a mode or an option with which nothing is asked about."""
    block = AcpSettings(
        model="m",
        mode="yolo",
        options={"allow_all": "on", "other": "x"},
        permissions=PermissionRules(inside={"default": "allow"}, outside={"default": "allow"}),
    )

    found = acp(block)
    assert (found.model, found.mode, dict(found.options)) == ("m", None, {"other": "x"})
    assert found.permissions == PermissionRules()
    changing = {"edit", "delete", "move", "execute", "fetch"}
    assert denied_by(found).inside == denied_by(found).outside == changing
