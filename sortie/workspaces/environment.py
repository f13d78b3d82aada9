"""What a run's hooks and agent find in their environment; pure.

Rule 1: neither gets a secret of the tracker or the server, under whatever name it stands, nor
a text that contains one, such as a URL.
Rule 2: git finds no repository above the workspace, and none that the daemon was started for, so
that a commit made there never lands in a repository that happens to lie around it.
Rule 3: run variables are the run's own; what an outer run left in the environment is dropped.
Rule 4: what the service manager has told the daemon stays with the daemon.
"""

from __future__ import annotations

import posixpath
from collections.abc import Collection, Iterable, Mapping

from msgspec import Struct

from sortie.model import RunId
from sortie.model.hiding import repr_without
from sortie.model.secrets import spellings

INHERITED_BY_HOOKS = frozenset(
    {
        "PATH",
        "HOME",
        "SHELL",
        "TMPDIR",
        "USER",
        "LOGNAME",
        "TERM",
        "LANG",
        "LC_ALL",
        "SSH_AUTH_SOCK",
    }
)
"""What a hook gets of the daemon's environment, besides what begins with OWN_PREFIX."""

WAY_OUT = frozenset(
    {
        "HTTPS_PROXY",
        "HTTP_PROXY",
        "NO_PROXY",
        "https_proxy",
        "http_proxy",
        "no_proxy",
        "SSL_CERT_FILE",
        "NODE_EXTRA_CA_CERTS",
    }
)
"""How this machine's programs reach others; a hook here gets them, too. Another host has its own
way, and the files that are named here are not there."""

OWN_PREFIX = "SORTIE_"
SECRET_VARIABLES = frozenset({"SORTIE_TRACKER_API_KEY", "SORTIE_SERVER_AUTH_TOKEN"})
"""Variables that hold a secret whatever the workflow says."""

VARIABLE_LIMIT = 32768
"""Bytes of a run variable. Linux refuses to start a program with a string over 128 KiB."""

_GIT_CEILING = "GIT_CEILING_DIRECTORIES"

_GIT_NAMES = frozenset(
    {
        "GIT_ALTERNATE_OBJECT_DIRECTORIES",
        "GIT_COMMON_DIR",
        "GIT_DIR",
        "GIT_GRAFT_FILE",
        "GIT_IMPLICIT_WORK_TREE",
        "GIT_INDEX_FILE",
        "GIT_NAMESPACE",
        "GIT_OBJECT_DIRECTORY",
        "GIT_OWN_PREFIX",
        "GIT_SHALLOW_FILE",
        "GIT_WORK_TREE",
    }
)
"""What names a repository: a daemon that is started from a git hook or alias has them set."""

_SERVICE_NAMES = frozenset(
    {
        "CREDENTIALS_DIRECTORY",
        "LISTEN_FDNAMES",
        "LISTEN_FDS",
        "LISTEN_PID",
        "NOTIFY_SOCKET",
        "WATCHDOG_PID",
        "WATCHDOG_USEC",
    }
)
"""What a service manager has told the daemon alone; an agent that spoke up there would be it."""

_RUN_NAMES = frozenset(
    {
        "SORTIE_ISSUE_ID",
        "SORTIE_ISSUE_IDENTIFIER",
        "SORTIE_WORKSPACE",
        "SORTIE_ATTEMPT",
        "SORTIE_RUN_ID",
        "SORTIE_SSH_HOST",
    }
)


class Secrets(Struct, frozen=True, kw_only=True):
    """What must not be passed on: variables by name, and every variable that contains a value."""

    names: frozenset[str] = frozenset()
    values: frozenset[str] = frozenset()

    __repr__ = repr_without("values")


class RunVariables(Struct, frozen=True, kw_only=True):
    """What hooks and agents are told about their run; ``ssh_host`` is None on this machine."""

    issue_id: str
    issue_identifier: str
    workspace: str
    attempt: int
    run_id: RunId
    ssh_host: str | None = None


def agent_env(parent: Mapping[str, str], run: RunVariables, secrets: Secrets) -> dict[str, str]:
    """Return an agent's environment: the daemon's less the secrets, and the run's variables."""
    inherited = _without_secrets(parent, secrets)
    kept = {name: value for name, value in inherited.items() if name not in _GIT_NAMES}
    return kept | _variables(run, parent)


def remote_agent_env(
    parent: Mapping[str, str], names: Iterable[str], run: RunVariables, secrets: Secrets
) -> dict[str, str]:
    """Return what an agent on a remote host gets: variables by name, and the run's variables.

    Everything else is the host's own.
    """
    handed_over = {name: parent[name] for name in names if name in parent}
    return _without_secrets(handed_over, secrets) | _variables(run, handed_over)


def remote_hook_env(
    parent: Mapping[str, str], names: Collection[str], run: RunVariables, secrets: Secrets
) -> dict[str, str]:
    """Return what a hook on a remote host gets, besides what is the host's own: the variables that
    are named, and the run's."""
    named = _named(parent, names)
    return _without_secrets(named, secrets) | _variables(run, named)


def hook_env(
    parent: Mapping[str, str], names: Collection[str], run: RunVariables, secrets: Secrets
) -> dict[str, str]:
    """Return a hook's environment: a few variables of the daemon's, those that are named, and the
    run's."""
    allowed = _named(parent, {*names, *INHERITED_BY_HOOKS, *WAY_OUT})
    return _without_secrets(allowed, secrets) | _variables(run, parent)


def _named(parent: Mapping[str, str], names: Collection[str]) -> dict[str, str]:
    return {
        name: value
        for name, value in parent.items()
        if (name in names or name.startswith(OWN_PREFIX)) and name not in _GIT_NAMES
    }


def helper_env(parent: Mapping[str, str], names: Iterable[str], secrets: Secrets) -> dict[str, str]:
    """Return the environment of a program that serves the daemon itself, such as ``ssh -G``.

    It is the daemon's, less the secrets and less ``names``, which only agents need.
    """
    needless = set(names)
    kept = {name: value for name, value in parent.items() if name not in needless}
    return _without_secrets(kept, secrets)


def _without_secrets(parent: Mapping[str, str], secrets: Secrets) -> dict[str, str]:
    barred = SECRET_VARIABLES | secrets.names | _RUN_NAMES | _SERVICE_NAMES
    hidden = {spelling for secret in secrets.values for spelling in spellings(secret)}
    # A secret that is also, say, the name of the user cannot be hidden by hiding the user.
    return {
        name: value
        for name, value in parent.items()
        if name not in barred
        and (name in INHERITED_BY_HOOKS or not any(spelling in value for spelling in hidden))
    }


def _variables(run: RunVariables, inherited: Mapping[str, str]) -> dict[str, str]:
    # Git looks for a repository in the workspace and then in the directories above it, but for
    # these and what is above them: https://git-scm.com/docs/git#_environment_variables
    ceilings = [posixpath.dirname(run.workspace), inherited.get(_GIT_CEILING, "")]
    variables = {
        _GIT_CEILING: ":".join(filter(None, ceilings)),
        "SORTIE_ISSUE_ID": run.issue_id,
        "SORTIE_ISSUE_IDENTIFIER": run.issue_identifier,
        "SORTIE_WORKSPACE": run.workspace,
        "SORTIE_ATTEMPT": str(run.attempt),
        "SORTIE_RUN_ID": run.run_id,
    }
    if run.ssh_host is not None:
        variables["SORTIE_SSH_HOST"] = run.ssh_host
    return {name: _passable(value) for name, value in variables.items()}


def _passable(value: str) -> str:
    """Return text that a program can be given: valid, without NUL, not longer than the limit."""
    encoded = value.replace("\0", "\ufffd").encode("utf-8", "replace")
    return encoded[:VARIABLE_LIMIT].decode("utf-8", "ignore")
