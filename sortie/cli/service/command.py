"""``sortie service``: have systemd run the daemon, or not any more."""

from __future__ import annotations

import os
import re
import sys
from enum import StrEnum
from typing import Annotated

from sortie.cli.arguments import Source
from sortie.cli.output import emit, emit_line
from sortie.cli.parameters import WrongUsage, argument, option
from sortie.cli.service.install import Installation
from sortie.cli.service.plan import Plan
from sortie.cli.service.systemd import Places, Systemd
from sortie.cli.service.unit import Scope
from sortie.model import SortieError

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,100}", re.ASCII)


class Action(StrEnum):
    """What is done to the unit."""

    INSTALL = "install"
    UNINSTALL = "uninstall"


def service(
    action: Annotated[Action, argument(help="Make the unit, or remove it.")],
    source: Source,
    user: Annotated[
        bool,
        option("--user", help="A unit of your own; the default unless you are root."),
    ] = False,
    system: Annotated[
        bool,
        option("--system", help="A unit of the system; the default for root."),
    ] = False,
    name: Annotated[
        str, option(metavar="NAME", help="The unit's name, for a second daemon.")
    ] = "sortie",
    run_as: Annotated[
        str | None,
        option(
            metavar="USER",
            help="Who runs a unit of the system; by default who owns the workflow file.",
        ),
    ] = None,
    dry_run: Annotated[
        bool,
        option("--dry-run", help="Print the unit and do nothing to the machine."),
    ] = False,
) -> int:
    """Install the daemon as a service of systemd, or uninstall it.

    To install is to check the workflow file, to write a unit and a file for its secrets, which
    only its owner can read, and to have systemd start the unit, now and at each start of the
    machine. Each thing that is done is a line on stdout, and so is what is left for you to do. A
    unit or file that was not written so, or was changed since, is left alone.

    To uninstall is to stop the unit and to remove what was made. Database and workspaces stay.
    """
    if user and system:
        raise WrongUsage("takes one of --user and --system", parameter="--user")
    if not _NAME.fullmatch(name.removesuffix(".service")):
        raise WrongUsage(f"{name!r} is no name of a unit", parameter="--name")
    as_root = os.geteuid() == 0
    scope = Scope.SYSTEM if system or (as_root and not user) else Scope.USER
    if run_as is not None and scope is Scope.USER:
        raise WrongUsage("belongs to --system", parameter="--run-as")
    if sys.platform != "linux":
        raise SortieError("systemd is Linux's; run 'sortie run' under the supervisor you have")
    installation = Installation(name.removesuffix(".service"), Places.of(scope), Systemd(scope))
    if action is Action.UNINSTALL:
        if not dry_run:
            _need_rights(scope)
        _tell(installation.uninstall() if not dry_run else installation.would_remove())
        return 0
    source.require()
    plan = Plan.of(source, scope, run_as, installation.environment_file)
    if dry_run:
        emit(installation.checked(plan))
        return 0
    _need_rights(scope)
    _tell(installation.install(plan))
    return 0


def _need_rights(scope: Scope) -> None:
    if scope is Scope.SYSTEM and not os.access("/etc/systemd", os.W_OK):
        raise SortieError(
            "a unit of the system needs root; use sudo, or --user for one of your own"
        )


def _tell(lines: list[str]) -> None:
    for line in lines:
        emit_line(line)
