"""What hooks and agents find in their environment."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from msgspec.structs import replace

from sortie.model import RunId
from sortie.workspaces import RunVariables, Secrets, agent_env, hook_env
from sortie.workspaces.environment import VARIABLE_LIMIT, remote_agent_env, remote_hook_env

RUN = RunVariables(
    issue_id="1",
    issue_identifier="ABC-1",
    workspace="/w/ABC-1",
    attempt=2,
    run_id=RunId("run"),
)
OURS = {
    "GIT_CEILING_DIRECTORIES": "/w",
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
    "NOTIFY_SOCKET": "/run/systemd/notify",
    "WATCHDOG_USEC": "300000000",
    "WATCHDOG_PID": "17",
    "LISTEN_FDS": "1",
    "CREDENTIALS_DIRECTORY": "/run/credentials/sortie.service",
}
SECRETS = Secrets(names=frozenset({"GITHUB_TOKEN"}), values=frozenset({"hunter2", "", "p/ss word"}))


def test_an_agent_gets_all_but_the_secrets() -> None:
    """Secrets are left out by name, by value and within values, as in a URL, and so is what the
    service manager has told the daemon; the run's variables replace inherited ones.
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
    assert hook_env(PARENT, (), RUN, SECRETS) == OURS | {
        "PATH": "/bin",
        "HOME": "/home/me",
        "USER": "hunter2",
        "LC_ALL": "C",
        "SSH_AUTH_SOCK": "/run/agent",
        "SORTIE_DB_PATH": "/db",
    }


WAY_OUT = {
    "HTTPS_PROXY": "http://proxy:3128",
    "http_proxy": "http://proxy:3128",
    "NO_PROXY": "localhost",
    "SSL_CERT_FILE": "/etc/ssl/ours.pem",
    "NODE_EXTRA_CA_CERTS": "/etc/ssl/ours.pem",
}


def test_a_hook_here_reaches_others_as_the_daemon_does() -> None:
    """It has the proxies and certificates of this machine, which are another host's neither; and
    no proxy that holds a secret."""
    parent = WAY_OUT | {"HTTP_PROXY": "http://me:hunter2@proxy:3128"}

    assert hook_env(parent, (), RUN, SECRETS) == OURS | WAY_OUT
    assert remote_hook_env(parent, (), RUN, SECRETS) == OURS


def test_a_hook_gets_what_is_named() -> None:
    """Here and on a host, as far as it is set and no secret, and is not the run's or git's own."""
    names = ("EDITOR", "EMPTY", "MISSING", "COPY_OF_TOKEN", "GITHUB_TOKEN", "SORTIE_RUN_ID")
    parent = PARENT | {"GIT_DIR": "/elsewhere"}

    for given in (hook_env, remote_hook_env):
        without = given(parent, (), RUN, SECRETS)
        found = given(parent, (*names, "GIT_DIR", "HTTPS_PROXY"), RUN, SECRETS)
        assert found == without | {"EDITOR": "ed", "EMPTY": ""}


def test_the_host_is_told_where_there_is_one() -> None:
    """Only a remote run has SORTIE_SSH_HOST."""
    remote = replace(RUN, ssh_host="builder")

    assert hook_env({}, (), remote, Secrets()) == OURS | {"SORTIE_SSH_HOST": "builder"}


@pytest.mark.parametrize(
    ("identifier", "value"),
    [
        ("a\0b", "a\ufffdb"),
        ("\ud800", "?"),
        ("x" * (1 << 20), "x" * VARIABLE_LIMIT),
        ("é" * (1 << 20), "é" * (VARIABLE_LIMIT // 2)),
        ("€" * (1 << 20), "€" * (VARIABLE_LIMIT // 3)),
    ],
)
def test_a_run_variable_can_always_be_passed(identifier: str, value: str) -> None:
    """No issue's name can keep a program from starting."""
    run = replace(RUN, issue_identifier=identifier)

    assert agent_env({}, run, Secrets())["SORTIE_ISSUE_IDENTIFIER"] == value


def git(
    directory: Path, *arguments: str, env: Mapping[str, str]
) -> subprocess.CompletedProcess[str]:
    """Run git as somebody, in a directory and an environment."""
    identity = {"GIT_AUTHOR_NAME": "a", "GIT_AUTHOR_EMAIL": "a@b"}
    identity |= {"GIT_COMMITTER_NAME": "a", "GIT_COMMITTER_EMAIL": "a@b"}
    return subprocess.run(
        ["git", *arguments],
        cwd=directory,
        env={"PATH": os.environ["PATH"], "HOME": str(directory), **env, **identity},
        capture_output=True,
        text=True,
        check=False,
    )


GIVEN: dict[str, Callable[[Mapping[str, str], RunVariables], dict[str, str]]] = {
    "agent": lambda parent, run: agent_env(parent, run, Secrets()),
    "hook": lambda parent, run: hook_env(parent, (), run, Secrets()),
    "agent on a host": lambda parent, run: remote_agent_env(parent, (), run, Secrets()),
    "hook on a host": lambda parent, run: remote_hook_env(parent, (), run, Secrets()),
}


@pytest.mark.parametrize("name", GIVEN)
def test_a_commit_in_a_workspace_never_lands_around_it(name: str, tmp_path: Path) -> None:
    """Git sees the workspace's own repository and none above, also where the daemon was started
    from a git hook, and whoever had set a ceiling before keeps it.
    """
    top, workspace = tmp_path / "mine", tmp_path / "mine/workspaces/A"
    (workspace / "below").mkdir(parents=True)
    commit = ("commit", "--allow-empty", "-m", "by an agent")
    git(top, "init", env={})
    parent = {
        "GIT_CEILING_DIRECTORIES": "/elsewhere",
        "GIT_DIR": str(top / ".git"),
        "GIT_WORK_TREE": str(top),
        "GIT_INDEX_FILE": str(top / ".git/index"),
    }
    env = GIVEN[name](parent, replace(RUN, workspace=str(workspace)))

    outside = [git(place, *commit, env=env) for place in (workspace, workspace / "below")]
    mine = git(top, "log", "--oneline", env={})
    git(workspace, "init", env=env)
    inside = git(workspace / "below", *commit, env=env)

    assert [ran.returncode for ran in outside] == [128, 128]
    assert "not a git repository" in outside[1].stderr
    assert mine.stdout == ""
    assert inside.returncode == 0
    ceilings = env["GIT_CEILING_DIRECTORIES"].split(":")
    assert ceilings[0] == str(workspace.parent)
    assert ceilings[1:] == ([] if "host" in name else ["/elsewhere"])


def test_secrets_do_not_show() -> None:
    """The values stay out of what a debugger or a log prints."""
    assert "hunter2" not in repr(SECRETS)
