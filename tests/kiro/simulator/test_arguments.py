"""The command line that the simulator shares with kiro-cli."""

from __future__ import annotations

import pytest

from sortie.kiro.headless.arguments import ChatOptions, chat
from sortie.kiro.simulator.arguments import UsageError, parse_chat


def test_it_reads_what_the_adapter_builds() -> None:
    """Every option of the adapter's command line arrives where it belongs."""
    options = ChatOptions(model="m-1", agent="ops", trust_tools=("read", "write"))
    invocation = chat(options, "-v is a prompt", resume=True)

    parsed = parse_chat(invocation.arguments[1:])

    assert {name: value for name, value in vars(parsed).items() if value} == {
        "no_interactive": True,
        "wrap": "never",
        "resume": True,
        "model": "m-1",
        "agent": "ops",
        "trust_tools": "read,write",
        "prompt": "-v is a prompt",
    }


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--nope"], "unexpected argument '--nope' found"),
        (["-x"], "unexpected argument '-x' found"),
        (["--resume", "-r"], "the argument '-r' cannot be used multiple times"),
        (["--model"], "a value is required for '--model' but none was supplied"),
        (["--model", "--resume"], "a value is required for '--model' but none was supplied"),
        (["--resume=yes"], "unexpected value 'yes' for '--resume' found"),
        (["--wrap", "nevr"], "invalid value 'nevr' for '--wrap'"),
        (["--resume", "--resume-id", "x"], "'--resume' cannot be used with '--resume-id <ID>'"),
        (["--resume-id", "../up"], "invalid value '../up' for '--resume-id'"),
        (["--session-source", "v1"], "requires '--delete-session <ID>'"),
        (["--delete-session=x", "--session-source=v3"], "invalid value 'v3'"),
        (["one", "two"], "unexpected argument 'two' found"),
        (["one", "--", "--two"], "unexpected argument '--two' found"),
    ],
)
def test_what_kiro_refuses_is_refused(arguments: list[str], message: str) -> None:
    """Unknown, doubled and incomplete arguments are usage errors."""
    with pytest.raises(UsageError, match=message):
        parse_chat(arguments)


def test_an_empty_trust_list_is_a_value() -> None:
    """``--trust-tools=`` trusts nothing, which is not the same as not being given."""
    assert parse_chat(["--trust-tools=", "-"]).trust_tools == ""
    assert parse_chat(["--trust-tools", "a,b"]).trust_tools == "a,b"
    assert parse_chat([]).trust_tools is None


def test_verbosity_is_counted() -> None:
    """Each v counts, together or apart."""
    assert parse_chat(["-v", "-vv", "--verbose"]).verbose == 4
    assert parse_chat([]).verbose == 0
