"""A session is in a mode that asks about what the rules deny, or there is none."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import trio

from sortie.agents.acp.asking import Asking, asking_variables
from sortie.agents.acp.settings import AcpSettings
from sortie.agents.permissions import PermissionRules
from sortie.model import AgentError, TurnOutcome
from sortie.model.turns import Notification, PermissionAsked
from sortie.transports.local import become_subreaper
from tests.agents.acp.scripted import TRUSTING, Stage
from tests.agents.kiro.simulated import Heard, visit

CLAUDE = "@agentclientprotocol/claude-agent-acp"
CODEX = "@agentclientprotocol/codex-acp"
COPILOT = "https://agentclientprotocol.com/protocol/session-modes#"
DENYING = PermissionRules(inside={"default": "allow", "edit": "deny"})
ALL = PermissionRules(inside={"default": "allow"}, outside={"default": "allow"})


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    become_subreaper()
    return Stage(tmp_path)


async def modes_set(stage: Stage, settings: AcpSettings, *words: str) -> list[str]:
    """Return the modes that were set in a session, in order."""
    result, heard = await stage.turn("acp: recall", *words, settings=settings)
    assert result.outcome is TurnOutcome.COMPLETED
    (said,) = (
        event.message
        for event in heard.events
        if isinstance(event, Notification) and event.message.startswith("it was said")
    )
    words_said = said.split('"')
    return [word.removesuffix(" was set") for word in words_said if word.endswith(" was set")]


async def refusal(stage: Stage, settings: AcpSettings, *words: str) -> AgentError:
    """Return why there is no session."""
    with trio.fail_after(60), pytest.raises(ExceptionGroup) as caught:
        await visit(stage.agent(*words, settings=settings), stage.params)
    (error,) = caught.value.exceptions
    assert isinstance(error, AgentError)
    return error


# By what it tells


def asking(agent: str, modes: str, settings: AcpSettings) -> Asking:
    """Return what is known of an agent's asking once its session is open."""
    known = Asking(agent, settings)
    offered = modes.split(",")
    known.take({"modes": {"availableModes": [{"id": m} for m in offered], "currentModeId": modes}})
    option = {"id": "mode", "category": "mode", "currentValue": offered[0]}
    known.take({"configOptions": [{**option, "options": [{"value": m} for m in offered]}]})
    return known


@pytest.mark.parametrize(
    ("agent", "modes", "rules", "chosen"),
    [
        (CLAUDE, "auto,plan,default", DENYING, "default"),
        (CLAUDE, "auto,default", TRUSTING, "default"),  # outside of the workspace it may not
        (CLAUDE, "auto,default", PermissionRules(), "default"),
        (CLAUDE, "a-new-one,default", DENYING, "default"),
        (CLAUDE, "default,auto", DENYING, None),
        (CLAUDE, "auto,default", ALL, None),
        (CODEX, "agent,workspace-write,read-only", TRUSTING, "workspace-write"),
        (CODEX, "agent,workspace-write,read-only", DENYING, "read-only"),
        ("codex-acp", "auto,read-only,full-access", DENYING, "read-only"),
        ("codex-acp", "auto,read-only,full-access", TRUSTING, None),
        ("gemini-cli", "yolo,autoEdit,default", DENYING, "default"),
        ("Copilot", f"{COPILOT}autopilot,{COPILOT}agent", DENYING, f"{COPILOT}agent"),
        ("OpenCode", "build,plan", DENYING, None),
        ("somebody", "careful,bold", DENYING, None),
    ],
)
def test_a_mode_that_asks_is_chosen(
    agent: str, modes: str, rules: PermissionRules, chosen: str | None
) -> None:
    """Where the rules deny something that the present mode would not ask about."""
    known = asking(agent, modes, AcpSettings(permissions=rules))

    assert known.mode_to_set() == chosen
    assert (known.refusal() is None) is (chosen is None)


@pytest.mark.parametrize(
    ("agent", "modes", "settings"),
    [
        (CLAUDE, "auto", AcpSettings(permissions=DENYING)),
        (CODEX, "agent,a-new-one", AcpSettings(permissions=DENYING)),
        ("somebody", "yolo,careful", AcpSettings(permissions=DENYING)),
        (CLAUDE, "auto,default", AcpSettings(permissions=DENYING, mode="auto")),
        (CLAUDE, "bypassPermissions", AcpSettings(permissions=TRUSTING, mode=None)),
    ],
)
def test_an_agent_that_will_not_ask_is_refused(
    agent: str, modes: str, settings: AcpSettings
) -> None:
    """Where there is no mode that asks, or the settings name one that does not."""
    known = asking(agent, modes, settings)
    refused = known.refusal()

    assert known.mode_to_set() is None
    assert refused is not None
    assert refused.kind == "adapter_settings"
    assert "of the workspace, but the agent does not ask about that" in refused.message


def test_who_names_a_mode_and_denies_nothing_has_that_mode() -> None:
    """What no rule names is denied only where it is asked about."""
    settings = AcpSettings(permissions=TRUSTING, mode="bypassPermissions")

    assert asking(CLAUDE, "bypassPermissions,default", settings).refusal() is None


@pytest.mark.parametrize("value", ["on", True])
def test_an_option_that_allows_all_is_taken_back(value: object) -> None:
    """Where anything is denied, and the settings do not name it."""
    option = {"id": "allow_all", "currentValue": value}
    denying, trusting = AcpSettings(permissions=DENYING), AcpSettings(permissions=ALL)
    known = asking("Copilot", f"{COPILOT}agent", denying)
    known.take({"configOptions": [option]})
    unbound = asking("Copilot", f"{COPILOT}agent", trusting)
    unbound.take({"configOptions": [option]})

    assert known.must_not_allow_all()
    assert "allow_all is on" in getattr(known.refusal(), "message", "")
    assert (unbound.must_not_allow_all(), unbound.refusal()) == (False, None)


@pytest.mark.parametrize(
    ("rules", "given", "expected"),
    [
        (ALL, None, None),
        (TRUSTING, None, {"external_directory": "ask"}),
        (DENYING, None, {"edit": "ask", "external_directory": "ask"}),
        (
            PermissionRules(),
            '{"edit": "allow", "skill": "deny"}',
            {
                "skill": "deny",
                **dict.fromkeys(("edit", "bash", "webfetch", "websearch"), "ask"),
                "external_directory": "ask",
            },
        ),
        (TRUSTING, "no json", {"external_directory": "ask"}),
        (TRUSTING, "[" * 100_000, {"external_directory": "ask"}),
    ],
)
def test_opencode_is_told_to_ask(
    rules: PermissionRules, given: str | None, expected: object
) -> None:
    """By the variable that goes before its configuration; what else is in it stays."""
    env = {} if given is None else {"OPENCODE_PERMISSION": given}
    told = asking_variables(AcpSettings(permissions=rules), env)

    assert json.loads(told.get("OPENCODE_PERMISSION", "null")) == expected
    assert told.get("COPILOT_ALLOW_ALL") == (None if expected is None else "false")


@pytest.mark.parametrize(
    ("agent", "kind", "outside", "refused"),
    [
        ("OpenCode", "execute", False, True),
        ("OpenCode", "edit", True, True),
        ("OpenCode", "read", False, False),
        ("Copilot", "execute", False, True),
        ("Copilot", "edit", True, False),
        (CLAUDE, "edit", False, True),
        (CLAUDE, "edit", True, False),  # its memory
        (CLAUDE, "execute", False, False),  # what only reads
        ("somebody", "edit", False, False),
    ],
)
def test_a_tool_that_ran_unasked_shows_a_configuration(
    agent: str, kind: str, outside: bool, refused: bool
) -> None:
    """Where the agent asks about each such tool unless it has leave of its own."""
    known = Asking(agent, AcpSettings(permissions=PermissionRules()))

    failure = known.ran_unasked(kind, outside=outside)

    assert (failure is not None) is refused
    assert failure is None or "gives it leave" in failure.message


# In a session


@pytest.mark.parametrize("form", [(), ("--mode-option",)])
async def test_a_mode_that_asks_is_set(stage: Stage, form: tuple[str, ...]) -> None:
    """Before the first turn, by whichever way the agent has."""
    words = ("--like", CLAUDE, "--modes", "auto,plan,default", *form)
    settings = AcpSettings(permissions=DENYING)

    assert await modes_set(stage, settings, *words) == ["default"]
    _, heard = await stage.turn("one", *words, settings=settings)
    told = [event.message for event in heard.events if isinstance(event, Notification)]
    assert told[0].startswith("[mode] default was set")


async def test_an_agent_that_stays_in_its_mode_has_no_session(stage: Stage) -> None:
    """The issue is held until the settings change; the message says what does not fit."""
    words = ("--like", CLAUDE, "--modes", "auto,default", "--mode-option", "--stuck")

    error = await refusal(stage, AcpSettings(permissions=DENYING), *words)

    assert error.kind == "adapter_settings"
    assert str(error) == (
        "acp.permissions denies edit inside of the workspace and delete, edit, execute, fetch,"
        " move outside of the workspace, but the agent does not ask about that: its mode is auto;"
        " set acp.mode to default, or allow it in acp.permissions"
    )


async def test_the_settings_choose_the_mode(stage: Stage) -> None:
    """A mode that they name is used, also one that asks nothing where they deny nothing."""
    settings = AcpSettings(permissions=TRUSTING, mode="bypassPermissions")
    words = ("--like", CLAUDE, "--modes", "auto,default,bypassPermissions")

    assert await modes_set(stage, settings, *words) == ["bypassPermissions"]


@pytest.mark.parametrize("form", [(), ("--mode-option",)])
async def test_a_mode_that_changes_in_a_turn_ends_it(stage: Stage, form: tuple[str, ...]) -> None:
    """The turn is cancelled and the issue held; nothing more is done in that session."""
    words = ("--like", CLAUDE, "--modes", "default,acceptEdits,auto", *form)
    settings, heard = AcpSettings(permissions=DENYING), Heard()

    with trio.fail_after(60):
        async with stage.session(*words, settings=settings) as session:
            ended = await session.run_turn("acp: change auto\nacp: hang", heard)
            with pytest.raises(AgentError) as refused:
                await session.run_turn("one more", Heard())

    assert (ended.outcome, ended.error_kind) == (TurnOutcome.FAILED, "adapter_settings")
    assert "its mode is auto" in (ended.message or "")
    assert refused.value.kind == "adapter_settings"


async def test_a_mode_that_still_asks_ends_nothing(stage: Stage) -> None:
    """What may be done without a question may be."""
    words = ("--like", CLAUDE, "--modes", "default,acceptEdits,auto")
    rules = PermissionRules(inside={"default": "allow", "fetch": "deny"})

    result, _ = await stage.turn(
        "acp: change acceptEdits", *words, settings=AcpSettings(permissions=rules)
    )

    assert result.outcome is TurnOutcome.COMPLETED


async def test_opencode_must_ask_about_what_is_denied(stage: Stage) -> None:
    """It tells no mode: a tool that ran without a question shows that it does not."""
    settings = AcpSettings(permissions=PermissionRules(inside={"execute": "deny", "edit": "allow"}))

    ended, _ = await stage.turn("acp: shell true", "--like", "OpenCode", settings=settings)
    allowed, _ = await stage.turn("acp: shell true", "--like", "OpenCode")

    assert ended.error_kind == "adapter_settings"
    assert "execute inside of the workspace" in (ended.message or "")
    assert allowed.outcome is TurnOutcome.COMPLETED


async def test_the_variable_for_opencode_is_in_its_environment(stage: Stage) -> None:
    """It is there for every agent, since which one it is shows later."""
    said = 'acp: shell printf "%s" "$OPENCODE_PERMISSION" > told'

    await stage.turn(said)

    assert json.loads((stage.workspace / "told").read_text()) == {"external_directory": "ask"}


async def test_a_turn_that_is_cancelled_by_a_denial_has_failed(stage: Stage) -> None:
    """Codex calls a turn cancelled in which something was denied."""
    words = ("--like", CODEX, "--modes", "read-only")

    result, heard = await stage.turn(
        "acp: tool edit made",
        *words,
        settings=AcpSettings(permissions=PermissionRules()),
    )

    assert [e.answer[:6] for e in heard.events if isinstance(e, PermissionAsked)] == ["denied"]
    assert (result.outcome, result.error_kind) == (TurnOutcome.FAILED, "turn_failed")
    assert "after a permission was denied" in (result.message or "")
