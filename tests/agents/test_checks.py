"""What agents' adapters tell the doctor of their credential, without using any of it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from sortie import agents
from sortie.agents import AgentLook, SessionParams
from sortie.model import RunId
from sortie.model.checks import CheckOutcome, CheckResult
from sortie.transports import Exit
from tests.agents.fake_transport import Ends, FakeTransport, Say


def look(
    kind: str, env: Mapping[str, str], *said: bytes, remote: bool = False
) -> tuple[AgentLook, FakeTransport]:
    """Return what a kind's checks go by, where the program says this."""
    transport = FakeTransport(lambda _: (*(Say(1, text) for text in said), Ends(Exit(status=0))))
    made = AgentLook(
        command=None,
        settings=agents.ADAPTERS.load(kind).block(),
        params=SessionParams(
            run_id=RunId("doctor"), workspace="/", transport=transport, env=dict(env)
        ),
        remote=remote,
    )
    return made, transport


async def credential(about: AgentLook, kind: str) -> CheckResult:
    """Return what becomes of the one check that an adapter has."""
    (check,) = agents.ADAPTERS.load(kind).checks(about)
    assert check.name == "credential"
    return await check.ask()


KEY = {"KIRO_API_KEY": "sk-0123456789", "PATH": "/bin"}


async def test_kiro_is_asked_whether_it_takes_the_key() -> None:
    """Its own word counts, and nothing but ``whoami`` is run."""
    good, transport = look("kiro", KEY, b"Authenticated with API key\n")
    bad, _ = look("kiro", KEY, b"Authentication failed. sk-0123456789\n")

    accepted, refused = await credential(good, "kiro"), await credential(bad, "kiro")

    assert accepted.outcome is CheckOutcome.OK
    assert [command.argv for command in transport.commands] == [("/bin/kiro-cli", "whoami")]
    assert refused.outcome is CheckOutcome.FAILED
    assert "sk-0123456789" not in f"{refused}"


async def test_without_a_key_kiro_is_not_asked() -> None:
    """It would begin a login in a browser."""
    missing, transport = look("kiro", {"PATH": "/bin"})

    found = await credential(missing, "kiro")

    assert found.outcome is CheckOutcome.FAILED
    assert "KIRO_API_KEY" in found.remedy
    assert transport.commands == []


async def test_a_key_for_hosts_is_asked_for_by_nobody_here() -> None:
    """The program need not be on the daemon's machine."""
    remote, transport = look("kiro", KEY, remote=True)

    found = await credential(remote, "kiro")

    assert found.outcome is CheckOutcome.OK
    assert "handed to the hosts" in found.sentence
    assert transport.commands == []


@pytest.mark.parametrize(
    ("env", "found"),
    [
        ({"ANTHROPIC_API_KEY": "sk-ant-0123"}, "ANTHROPIC_API_KEY is set"),
        ({"CLAUDE_CODE_OAUTH_TOKEN": "t"}, "CLAUDE_CODE_OAUTH_TOKEN is set"),
        ({"CLAUDE_CODE_USE_BEDROCK": "1"}, "Bedrock"),
        ({"ANTHROPIC_API_KEY": " ", "CLAUDE_CODE_USE_VERTEX": "0"}, None),
        ({}, None),
    ],
)
async def test_a_login_of_claude_code_is_looked_for(
    tmp_path: Path, env: Mapping[str, str], found: str | None
) -> None:
    """In the environment; no value of it is told, and no turn is paid for."""
    about, transport = look("claude-code", {"HOME": str(tmp_path)} | dict(env))

    result = await credential(about, "claude-code")

    assert result.outcome is (CheckOutcome.WARNING if found is None else CheckOutcome.OK)
    assert found is None or found in result.sentence
    assert "sk-ant-0123" not in f"{result}"
    assert transport.commands == []


async def test_a_login_that_claude_code_keeps_is_found(tmp_path: Path) -> None:
    """Where it stands says its configuration, or the home directory."""
    (tmp_path / ".claude").mkdir()
    (tmp_path / ".claude" / ".credentials.json").write_text("{}")
    at_home, _ = look("claude-code", {"HOME": str(tmp_path)})
    moved, _ = look(
        "claude-code", {"HOME": "/nowhere", "CLAUDE_CONFIG_DIR": str(tmp_path / ".claude")}
    )

    for about in (at_home, moved):
        assert "there is a login in" in (await credential(about, "claude-code")).sentence
