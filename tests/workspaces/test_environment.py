"""What hooks and agents find in their environment."""

from __future__ import annotations

from dataclasses import replace

import pytest

from sortie.model import RunId
from sortie.workspaces import RunVariables, Secrets, agent_env, hook_env
from sortie.workspaces.environment import VALUE_LIMIT

RUN = RunVariables(
    issue_id="1",
    issue_identifier="ABC-1",
    workspace="/w/ABC-1",
    attempt=2,
    run_id=RunId("run"),
)
OURS = {
    "SORTIE_ISSUE_ID": "1",
    "SORTIE_ISSUE_IDENTIFIER": "ABC-1",
    "SORTIE_WORKSPACE": "/w/ABC-1",
    "SORTIE_ATTEMPT": "2",
    "SORTIE_RUN_ID": "run",
}
PARENT = {
    "PATH": "/bin",
    "HOME": "/home/me",
    "USER": "hunter2",
    "LC_ALL": "C",
    "SSH_AUTH_SOCK": "/run/agent",
    "EDITOR": "ed",
    "KIRO_API_KEY": "k",
    "GITHUB_TOKEN": "gh",
    "COPY_OF_TOKEN": "hunter2",
    "EMPTY": "",
    "REMOTE": "https://me:hunter2@example.com/",
    "QUOTED": "https://me:p%2Fss%20word@example.com/",
    "JSON": '{"auth": "p/ss word"}',
    "SORTIE_DB_PATH": "/db",
    "SORTIE_COPY": "hunter2",
    "SORTIE_REMOTE": "https://me:hunter2@example.com/",
    "SORTIE_TRACKER_API_KEY": "t",
    "SORTIE_SERVER_AUTH_TOKEN": "s",
    "SORTIE_RUN_ID": "outer",
    "SORTIE_SSH_HOST": "outer",
}
SECRETS = Secrets(names=frozenset({"GITHUB_TOKEN"}), values=frozenset({"hunter2", "", "p/ss word"}))


def test_an_agent_gets_all_but_the_secrets() -> None:
    """Secrets are left out by name, by value and within values, as in a URL; the run's variables
    replace inherited ones.
    """
    assert agent_env(PARENT, RUN, SECRETS) == OURS | {
        "PATH": "/bin",
        "HOME": "/home/me",
        "USER": "hunter2",
        "LC_ALL": "C",
        "SSH_AUTH_SOCK": "/run/agent",
        "EDITOR": "ed",
        "KIRO_API_KEY": "k",
        "EMPTY": "",
        "SORTIE_DB_PATH": "/db",
    }


def test_a_hook_gets_a_short_list() -> None:
    """A hook sees what a shell needs and Sortie's own variables, less the secrets."""
    assert hook_env(PARENT, RUN, SECRETS) == OURS | {
        "PATH": "/bin",
        "HOME": "/home/me",
        "USER": "hunter2",
        "LC_ALL": "C",
        "SSH_AUTH_SOCK": "/run/agent",
        "SORTIE_DB_PATH": "/db",
    }


def test_the_host_is_told_where_there_is_one() -> None:
    """Only a remote run has SORTIE_SSH_HOST."""
    remote = replace(RUN, ssh_host="builder")

    assert hook_env({}, remote, Secrets()) == OURS | {"SORTIE_SSH_HOST": "builder"}


@pytest.mark.parametrize(
    ("identifier", "value"),
    [
        ("a\0b", "a\ufffdb"),
        ("\ud800", "?"),
        ("x" * (1 << 20), "x" * VALUE_LIMIT),
        ("é" * (1 << 20), "é" * (VALUE_LIMIT // 2)),
        ("€" * (1 << 20), "€" * (VALUE_LIMIT // 3)),
    ],
)
def test_a_run_variable_can_always_be_passed(identifier: str, value: str) -> None:
    """No issue's name can keep a program from starting."""
    run = replace(RUN, issue_identifier=identifier)

    assert agent_env({}, run, Secrets())["SORTIE_ISSUE_IDENTIFIER"] == value


def test_secrets_do_not_show() -> None:
    """The values stay out of what a debugger or a log prints."""
    assert "hunter2" not in repr(SECRETS)
