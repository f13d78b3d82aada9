"""What is to be installed: the unit for a workflow file, and what it needs to run."""

from __future__ import annotations

import getpass
import os
import pwd
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from sortie.cli.arguments import Source
from sortie.cli.output import note
from sortie.cli.service import environment_file as secrets
from sortie.cli.service.unit import Scope, Unit
from sortie.model import SortieError, WorkflowError
from sortie.model.hiding import repr_without

_STANDARD_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_PROBE_SECONDS = 30


class Plan(Struct, frozen=True, kw_only=True):
    """The unit that is wanted, the variables that it must have and those that it may need.

    ``overrides`` are settings of this shell, which the service does not have.
    """

    unit: Unit
    required: tuple[str, ...]
    useful: tuple[str, ...]
    known: Mapping[str, str]
    notes: tuple[str, ...] = ()
    overrides: tuple[str, ...] = ()

    __repr__ = repr_without("known")

    @classmethod
    def of(cls, source: Source, scope: Scope, run_as: str | None, environment: Path) -> Plan:
        """Return the plan for a workflow file. Raises WorkflowError where that has errors."""
        import trio

        from sortie import agents
        from sortie.daemon.dry_run import missing_program
        from sortie.daemon.workflow_file import load_workflow

        options = source.options()
        given = secrets.values_in(environment)
        options = replace(options, environ={**given, **options.environ})
        try:
            settings = load_workflow(options).settings
        except WorkflowError:
            note(f"the service gets keys and tokens from {environment}; they count as set here")
            raise
        workflow = os.path.abspath(source.workflow)
        user = getpass.getuser() if scope is Scope.USER else run_as or _owner(workflow)
        unit = Unit(
            scope=scope,
            workflow=workflow,
            program=_program(),
            user=user,
            search_path=_search_path(scope, user),
            environment_file=str(environment),
        )
        if scope is Scope.SYSTEM:
            _try_as(user, unit)
        seen = replace(options, environ={**options.environ, "PATH": unit.search_path})
        missing = trio.run(missing_program, seen, settings)
        return cls(
            unit=unit,
            required=tuple(
                name
                for name in settings.secret_variables
                if options.environ.get(name) or not name.startswith("SORTIE_")
            ),
            useful=agents.ADAPTERS.load(settings.agent.kind).env_names,
            known=options.environ,
            notes=() if missing is None else (f"the agent: {missing}",),
            overrides=tuple(
                name
                for name in sorted(options.environ.keys() - given.keys())
                if name.startswith("SORTIE_") and name not in settings.secret_variables
            ),
        )


def _owner(workflow: str) -> str:
    try:
        owner = pwd.getpwuid(os.stat(workflow).st_uid).pw_name
    except (OSError, KeyError) as exc:
        raise SortieError(f"cannot tell who owns {workflow}; say --run-as USER") from exc
    if owner == "root":
        raise SortieError(
            f"{workflow} is root's, and agents should not run as root; say --run-as USER, with a"
            f" user of its own such as '{_user_made('sortie')}' makes"
        )
    return owner


def _user_made(name: str) -> str:
    """Return the command that makes a user of whom no path is in /home, for ProtectHome=."""
    return f"useradd --system --create-home --home-dir /var/lib/{name} {name}"


def _program() -> tuple[str, ...]:
    """Return what runs this program, by absolute paths that an upgrade does not change."""
    started = sys.argv[0]
    if os.path.basename(started) == "sortie":
        found = started if os.sep in started else shutil.which(started)
        if found is not None and os.access(found, os.X_OK):
            return (os.path.abspath(found),)
    return (sys.executable, "-m", "sortie")


def _search_path(scope: Scope, user: str) -> str:
    """Return where agents are looked for: as in this shell, or as the system has it."""
    beside = os.path.dirname(os.path.abspath(sys.argv[0]))
    if scope is Scope.USER:
        given = os.environ.get("PATH", "").split(os.pathsep)
        return ":".join(dict.fromkeys(filter(os.path.isabs, [*given, *_STANDARD_PATH.split(":")])))
    home = _account(user).pw_dir
    return ":".join(dict.fromkeys([beside, f"{home}/.local/bin", *_STANDARD_PATH.split(":")]))


def _account(user: str) -> pwd.struct_passwd:
    try:
        return pwd.getpwnam(user)
    except KeyError as exc:
        raise SortieError(f"there is no user {user}; make one with '{_user_made(user)}'") from exc


def _try_as(user: str, unit: Unit) -> None:
    """Raise SortieError where the user cannot run the program or read the workflow file."""
    if os.geteuid() != 0:
        return
    account = _account(user)
    for command in ([*unit.program, "version"], ["/bin/cat", unit.workflow]):
        try:
            subprocess.run(
                command,
                user=account.pw_uid,
                group=account.pw_gid,
                extra_groups=[],
                cwd="/",
                env={"PATH": _STANDARD_PATH, "HOME": account.pw_dir},
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=_PROBE_SECONDS,
                check=True,
            )
        except (OSError, subprocess.SubprocessError) as exc:
            raise SortieError(
                f"{user} cannot run '{' '.join(command)}'; the program and the workflow file have"
                f" to be where {user} can read them"
            ) from exc
