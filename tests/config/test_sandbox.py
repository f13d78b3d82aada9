"""The settings of sandboxes: what is accepted, and what is told of what is not."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from sortie.config.sandbox import SandboxSettings, sandbox_findings
from sortie.config.worker import WorkerSettings
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


def test_a_container_is_decoded() -> None:
    """An engine by its name stays a name, and memory is in bytes."""
    sandbox = settings_of(
        f"{TRACKER}\nsandbox:\n  {{kind: container, image: 'a/b:c', engine: podman, memory: 2G,"
        " cpus: 1.5}"
    ).sandbox

    assert (sandbox.image, sandbox.engine, sandbox.memory) == ("a/b:c", "podman", 2 << 30)
    assert (sandbox.cpus, sandbox.pids) == (1.5, None)


@pytest.mark.parametrize("network", ["full", "none"])
def test_a_word_is_no_host(network: str) -> None:
    """Nor is the list of hosts anything then."""
    settings = settings_of(f"{TRACKER}\nsandbox: {{kind: bubblewrap, network: {network}}}")

    assert settings.sandbox.network == network
    assert settings.sandbox.hosts == ()


@pytest.mark.parametrize(
    ("block", "told"),
    [
        ("kind: jail", "sandbox.kind: needs none, bubblewrap, container or command"),
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
        ("kind: bubblewrap, disk: 1", "sandbox.disk: unknown key"),
        ("kind: bubblewrap, memory: 1g", "sandbox.memory: means nothing to kind: bubblewrap"),
        ("kind: container", "sandbox.image: is required with kind: container"),
        ("kind: bubblewrap, devcontainer: true", "sandbox.devcontainer: means nothing to kind"),
        (
            "kind: container, image: a, devcontainer: true",
            "sandbox.devcontainer: cannot be had beside sandbox.image",
        ),
        (
            "kind: container, devcontainer: true",
            "sandbox.devcontainer: needs repository.url, whose base names the image",
        ),
        ("kind: container, image: a, memory: 4x", "sandbox.memory: needs a number of bytes"),
        ("kind: container, image: a, memory: 1m", "sandbox.memory: needs at least 64m"),
        ("kind: container, image: a, memory: true", "sandbox.memory: needs a number of bytes"),
        ("kind: container, image: a, cpus: 0", "sandbox.cpus: needs more than 0"),
        ("kind: container, image: a, pids: 3", "sandbox.pids: needs a whole number"),
        ("kind: container, image: a, command: b", "sandbox.command: means nothing to kind"),
        ("network: none", "sandbox.network: means nothing without sandbox.kind"),
        ("kind: command, command: a, read: [b]", "sandbox.read: means nothing to kind: command"),
        ("kind: bubblewrap, command: a", "sandbox.command: means nothing to kind: bubblewrap"),
    ],
)
def test_what_is_wrong_is_told_with_its_place(block: str, told: str) -> None:
    problems = decoded(f"{TRACKER}\nsandbox: {{{block}}}").problems

    assert [problem for problem in problems if f"{problem.key}: {problem.message}".startswith(told)]


def wrong_on_hosts(sandbox: Mapping[str, object], **worker: object) -> list[str]:
    """Return the keys of what is wrong with a sandbox where runs are on an SSH host, and the agent
    can be led to its model."""
    found = sandbox_findings(
        SandboxSettings.model_validate(sandbox),
        WorkerSettings.model_validate({"ssh_hosts": ["one"], **worker}),
        leads=True,
        has_repository=True,
    )
    return [".".join(map(str, one.path)) for one in found if one.severity == "error"]


@pytest.mark.parametrize(
    "sandbox",
    [
        {"kind": "bubblewrap"},
        {"kind": "bubblewrap", "network": "none"},
        {"kind": "bubblewrap", "network": ["a.example"]},
        {"kind": "bubblewrap", "network": "none", "credentials": "proxy"},
        {"kind": "command", "command": "a"},
        {"kind": "container", "image": "a", "network": ["a.example"], "credentials": "proxy"},
    ],
)
def test_there_are_some_on_hosts(sandbox: dict[str, object]) -> None:
    assert wrong_on_hosts(sandbox) == []


@pytest.mark.parametrize(
    "more",
    [{"network": ["a.example"]}, {"network": "none", "credentials": "proxy"}, {"network": "none"}],
)
def test_each_network_goes_with_links_that_are_made_anew(more: dict[str, object]) -> None:
    """The way to a proxy is made anew, too."""
    assert wrong_on_hosts({"kind": "bubblewrap", **more}, ssh_reattach=True) == []


def test_a_piece_of_shell_is_not_put_into_one() -> None:
    """It is no program that could be started inside."""
    wrong = wrong_on_hosts({"kind": "bubblewrap"}, ssh_secret_delivery="inline")

    assert wrong == ["sandbox.kind"]


def test_what_a_host_does_not_have_is_told_with_its_place() -> None:
    """As everything that is wrong."""
    problems = decoded(
        f"{TRACKER}\nsandbox: {{kind: container, image: a}}\n"
        "worker: {ssh_hosts: [one], ssh_secret_delivery: inline}"
    ).problems

    assert [problem.key for problem in problems if problem.severity == "error"] == ["sandbox.kind"]


def test_there_is_none_in_pods() -> None:
    """Until there is, it is no use to believe in one."""
    problems = decoded(
        f"{TRACKER}\nsandbox: {{kind: bubblewrap}}\n"
        "worker: {kubernetes: {namespace: n, image: i, size: 1Gi}}"
    ).problems
    told = [problem.message for problem in problems if problem.key == "sandbox.kind"]

    assert [message for message in told if "none yet in pods" in message]


def test_a_home_stays_as_it_is_written() -> None:
    """It is that of the machine where the run lives."""
    assert settings_of(
        f"{TRACKER}\nsandbox: {{kind: bubblewrap, read: [~/.cargo]}}"
    ).sandbox.read == ("~/.cargo",)


def test_a_rule_may_have_its_own() -> None:
    """Key by key, as all blocks."""
    settings = settings_of(
        f"{TRACKER}\nsandbox: {{kind: bubblewrap, network: none}}\n"
        "rules: [{name: net, sandbox: {network: full}}]"
    )

    assert settings.sandbox.network == "none"
    assert settings.of_rule("net").sandbox.kind == "bubblewrap"
    assert settings.of_rule("net").sandbox.network == "full"
