"""The agent's program and directory."""

from __future__ import annotations

import pytest

from sortie.agents.launch import check_workspace, resolve_command
from sortie.model import AgentError, ErrorKind, TransportError
from tests.agents.fake_transport import FakeTransport

PROGRAMS = {
    "kiro-cli": "/bin/kiro-cli",
    "/opt/my tools/kiro": "/opt/my tools/kiro",
    "env": "/usr/bin/env",
}


def transport() -> FakeTransport:
    return FakeTransport(lambda _: (), programs=PROGRAMS)


@pytest.mark.parametrize(
    ("command", "argv"),
    [
        (None, ("/bin/kiro-cli",)),
        ("kiro-cli", ("/bin/kiro-cli",)),
        ("  kiro-cli \n", ("/bin/kiro-cli",)),
        ("/opt/my tools/kiro", ("/opt/my tools/kiro",)),
        ("'/opt/my tools/kiro'", ("/opt/my tools/kiro",)),
        ("env -i 'A=b c' kiro-cli", ("/usr/bin/env", "-i", "A=b c", "kiro-cli")),
        (("kiro-cli", "--v", ""), ("/bin/kiro-cli", "--v", "")),
        (("/opt/my tools/kiro",), ("/opt/my tools/kiro",)),
    ],
)
async def test_a_command_becomes_an_argv(
    command: str | tuple[str, ...] | None, argv: tuple[str, ...]
) -> None:
    """A list is argv; a string is one program if it resolves as a whole, else it is split."""
    assert await resolve_command(command, "kiro-cli", transport(), "/bin") == argv


@pytest.mark.parametrize(
    ("command", "message"),
    [
        ("", "agent.command is empty"),
        (" \t\n", "agent.command is empty"),
        ((), "agent.command is empty"),
        ((" ",), "agent.command is empty"),
        ("''", "agent.command \"''\" names no program"),
        ("env 'unclosed", "cannot be split: No closing quotation"),
        ("kirocli", "the agent's program 'kirocli' was not found on local"),
        ("kirocli --x", "the agent's program 'kirocli' was not found on local"),
        (("env x",), "the agent's program 'env x' was not found on local"),
        ("ki\0ro", "the agent's program 'ki\\x00ro' was not found on local"),
    ],
)
async def test_a_command_that_is_no_program(command: str | tuple[str, ...], message: str) -> None:
    """Empty, malformed and missing programs are ``agent_not_found``, each with its own words."""
    with pytest.raises(AgentError) as caught:
        await resolve_command(command, "kiro-cli", transport(), None)

    assert caught.value.kind is ErrorKind.AGENT_NOT_FOUND
    assert message in str(caught.value)


async def test_a_workspace_that_exists_passes() -> None:
    """An absolute path of a directory is accepted."""
    await check_workspace(transport(), "/work")


@pytest.mark.parametrize(
    ("workspace", "message"),
    [
        ("", "is empty"),
        ("  ", "is empty"),
        ("work", "is not an absolute path"),
        ("/wo\0rk", "is not an absolute path"),
        ("/missing", "does not exist or is not a directory"),
    ],
)
async def test_a_workspace_that_cannot_be_used(workspace: str, message: str) -> None:
    """Any other path is ``invalid_workspace_cwd``."""
    with pytest.raises(AgentError, match=message) as caught:
        await check_workspace(transport(), workspace)

    assert caught.value.kind is ErrorKind.INVALID_WORKSPACE_CWD


async def test_a_host_that_does_not_answer_is_not_a_missing_program() -> None:
    """Where the host cannot be asked, both checks fail as retryable ``response_error``."""
    silent = FakeTransport(lambda _: (), asking=TransportError("connection reset"))

    for check in (
        lambda: check_workspace(silent, "/work"),
        lambda: resolve_command(None, "kiro-cli", silent, None),
    ):
        with pytest.raises(AgentError, match="connection reset") as caught:
            await check()

        assert caught.value.kind is ErrorKind.RESPONSE_ERROR
