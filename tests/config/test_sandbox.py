"""The settings of sandboxes: what is accepted, and what is told of what is not."""

from __future__ import annotations

import pytest

from tests.config.sample import decoded, settings_of

TRACKER = """\
tracker: {kind: file, active_states: [Todo], handoff_state: Done}
file: {path: issues}"""


def test_a_sandbox_is_decoded() -> None:
    """Paths are absolute, hosts as they are written."""
    settings = settings_of(
        f"{TRACKER}\nsandbox:\n  kind: bubblewrap\n  read: [lib]\n"
        "  network: [API.example.com, '*.b.c:8']"
    )

    assert settings.sandbox.kind == "bubblewrap"
    assert settings.sandbox.read[0].startswith("/")
    assert settings.sandbox.read[0].endswith("/lib")
    assert settings.sandbox.hosts == ("API.example.com", "*.b.c:8")


@pytest.mark.parametrize("network", ["full", "none"])
def test_a_word_is_no_host(network: str) -> None:
    """Nor is the list of hosts anything then."""
    settings = settings_of(f"{TRACKER}\nsandbox: {{kind: bubblewrap, network: {network}}}")

    assert settings.sandbox.network == network
    assert settings.sandbox.hosts == ()


@pytest.mark.parametrize(
    ("block", "told"),
    [
        ("kind: jail", "sandbox.kind: needs none, bubblewrap or command"),
        ("kind: bubblewrap, network: some", "sandbox.network: needs none, full or a list of hosts"),
        ("kind: bubblewrap, network: []", "sandbox.network: needs none, full or a list of hosts"),
        ("kind: bubblewrap, network: ['a b']", "sandbox.network[0]: 'a b' is not a host"),
        ("kind: bubblewrap, network: [a, 7]", "sandbox.network[1]: '' is not a host"),
        ("kind: bubblewrap, network: [https://x]", "sandbox.network[0]: must be a host"),
        (
            "kind: bubblewrap, credentials: proxy",
            "sandbox.credentials: proxy needs sandbox.network",
        ),
        (
            "kind: bubblewrap, network: none, credentials: proxy",
            "sandbox.credentials: proxy is not for this agent",
        ),
        ("kind: bubblewrap, read: [lib, /]", "sandbox.read: holds / itself"),
        ("kind: command", "sandbox.command: is required with kind: command"),
        ("kind: bubblewrap, memory: 1", "sandbox.memory: unknown key"),
        ("network: none", "sandbox.network: means nothing without sandbox.kind"),
        ("kind: command, command: a, read: [b]", "sandbox.read: means nothing to kind: command"),
        ("kind: bubblewrap, command: a", "sandbox.command: means nothing to kind: bubblewrap"),
    ],
)
def test_what_is_wrong_is_told_with_its_place(block: str, told: str) -> None:
    problems = decoded(f"{TRACKER}\nsandbox: {{{block}}}").problems

    assert [problem for problem in problems if f"{problem.key}: {problem.message}".startswith(told)]


def test_there_is_none_on_hosts() -> None:
    """Until there is, it is no use to believe in one."""
    problems = decoded(
        f"{TRACKER}\nsandbox: {{kind: bubblewrap}}\nworker: {{ssh_hosts: [one]}}"
    ).problems

    assert [problem.key for problem in problems if problem.severity == "error"] == ["sandbox.kind"]


def test_a_rule_may_have_its_own() -> None:
    """Key by key, as all blocks."""
    settings = settings_of(
        f"{TRACKER}\nsandbox: {{kind: bubblewrap, network: none}}\n"
        "rules: [{name: net, sandbox: {network: full}}]"
    )

    assert settings.sandbox.network == "none"
    assert settings.of_rule("net").sandbox.kind == "bubblewrap"
    assert settings.of_rule("net").sandbox.network == "full"
