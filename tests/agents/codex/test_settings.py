"""The block, what is said of it, and what the doctor looks at."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace
from pydantic import ValidationError

from sortie.agents import AgentLook
from sortie.agents.codex import ADAPTER
from sortie.agents.codex.settings import CodexSettings, warn
from sortie.model.checks import CheckOutcome
from sortie.transports import Exit
from tests.agents.fake_transport import Ends, FakeTransport, Say
from tests.agents.test_checks import look

ALLOWING = {"inside": {"default": "allow"}}


@pytest.mark.parametrize(
    "block",
    [
        {"sandbox": "none"},
        {"approval_policy": "on-failure"},
        {"permissions": {"inside": {"fly": "allow"}}},
        {"model": "-c"},
        {"network": "yes"},
        {"start_timeout_ms": 10},
        {"unknown": 1},
    ],
)
def test_what_codex_does_not_take_is_an_error(block: dict[str, object]) -> None:
    """It is found before a run."""
    with pytest.raises(ValidationError):
        CodexSettings.model_validate(block)


@pytest.mark.parametrize(
    ("block", "key"),
    [
        ({}, None),
        ({"permissions": ALLOWING}, None),
        ({"permissions": ALLOWING, "approval_policy": "never"}, "codex.permissions"),
        ({"permissions": ALLOWING, "sandbox": "danger-full-access"}, "codex.permissions"),
        (
            {
                "permissions": ALLOWING,
                "sandbox": "danger-full-access",
                "approval_policy": "untrusted",
            },
            None,
        ),
        ({"network": True, "sandbox": "read-only"}, "codex.network"),
    ],
)
def test_keys_without_effect_are_told(block: dict[str, object], key: str | None) -> None:
    """They would be believed in."""
    assert [found for found, _ in warn(CodexSettings.model_validate(block))] == [key] * bool(key)


# The doctor


async def found(about: AgentLook, name: str) -> tuple[CheckOutcome, str]:
    """Return what a check of the adapter finds."""
    (check,) = (check for check in ADAPTER.checks(about) if check.name == name)
    result = await check.ask()
    return result.outcome, f"{result.sentence} {result.remedy}"


@pytest.mark.parametrize(
    ("env", "told"),
    [
        ({"CODEX_API_KEY": "sk-0123456789", "OPENAI_API_KEY": "sk-x"}, "CODEX_API_KEY is set"),
        ({"OPENAI_API_KEY": "sk-0123456789"}, "OPENAI_API_KEY is set"),
        ({"OPENAI_API_KEY": " "}, None),
        ({}, None),
    ],
)
async def test_a_key_is_looked_for(tmp_path: Path, env: dict[str, str], told: str | None) -> None:
    """No value of it is told, and no program is run."""
    about, transport = look("codex", {"HOME": str(tmp_path)} | env)

    outcome, words = await found(about, "credential")

    assert outcome is (CheckOutcome.WARNING if told is None else CheckOutcome.OK)
    assert (told or "codex login") in words
    assert "sk-0123456789" not in words
    assert transport.commands == []


async def test_a_login_is_found_where_codex_keeps_it(tmp_path: Path) -> None:
    """At home, or where its variable says."""
    (tmp_path / ".codex").mkdir()
    (tmp_path / ".codex" / "auth.json").write_text("{}")
    at_home, _ = look("codex", {"HOME": str(tmp_path)})
    moved, _ = look("codex", {"HOME": "/nowhere", "CODEX_HOME": str(tmp_path / ".codex")})

    for about in (at_home, moved):
        assert "there is a login in" in (await found(about, "credential"))[1]


def sandbox_look(status: int, **settings: object) -> tuple[AgentLook, FakeTransport]:
    """Return a look at a machine on which Codex's sandbox works, or ends with a status."""
    about, _ = look("codex", {"PATH": "/bin"})
    said = Say(2, b"WARNING: something\nbwrap: setting up uid map: Operation not permitted\n")
    transport = FakeTransport(
        lambda _: (said, Ends(Exit(status=status))), programs={"codex": "/bin/codex"}
    )
    params = replace(about.params, transport=transport)
    block = CodexSettings.model_validate(settings)
    return replace(about, params=params, settings=block), transport


async def test_a_sandbox_that_does_not_work_is_told() -> None:
    """With what it said, and what to set."""
    about, transport = sandbox_look(1)

    outcome, words = await found(about, "codex-sandbox")

    (command,) = transport.commands
    assert command.argv[:2] == ("/bin/codex", "sandbox")
    assert outcome is CheckOutcome.WARNING
    assert "setting up uid map" in words
    assert "codex.sandbox to danger-full-access" in words


async def test_a_sandbox_that_is_not_used_is_not_tried() -> None:
    """The wall around Codex is another check's affair."""
    about, transport = sandbox_look(1, sandbox="danger-full-access")

    outcome, _ = await found(about, "codex-sandbox")

    assert outcome is CheckOutcome.OK
    assert transport.commands == []


async def test_what_hinders_it_behind_a_wall_is_told() -> None:
    """The look's transport is the wall then."""
    assert ADAPTER.hindrance is not None
    broken, _ = sandbox_look(1)
    fine, _ = sandbox_look(0)

    assert "setting up uid map" in (await ADAPTER.hindrance(broken) or "")
    assert await ADAPTER.hindrance(fine) is None


async def test_on_hosts_only_the_credential_is_looked_for() -> None:
    """The program need not be on the daemon's machine."""
    about, _ = look("codex", {"OPENAI_API_KEY": "sk-0123456789"}, remote=True)

    assert [check.name for check in ADAPTER.checks(about)] == ["credential"]
