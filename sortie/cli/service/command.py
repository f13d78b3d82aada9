"""``sortie service``: have systemd run the daemon, or not any more."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator
from contextlib import suppress
from enum import StrEnum
from typing import Annotated

from sortie.cli.arguments import Source
from sortie.cli.output import emit, emit_line
from sortie.cli.parameters import WrongUsage, argument, option
from sortie.cli.service import environment_file as secrets
from sortie.cli.service.plan import Plan
from sortie.cli.service.systemd import Places, Systemd
from sortie.cli.service.unit import Scope, Unit, is_ours, marked, was_ours
from sortie.model import SortieError


class Installation:
    """A unit by its name: made, started, stopped and removed."""

    def __init__(self, name: str, places: Places, systemd: Systemd) -> None:
        self._service = f"{name}.service"
        self._unit_file = places.units / self._service
        self.environment_file = places.secrets / f"{name}.env"
        self._systemd = systemd

    def checked(self, plan: Plan) -> str:
        """Return the file of a unit that systemd finds no fault with. Raises SortieError."""
        content = marked(plan.unit.text())
        faults = self._systemd.faults(self._service, content)
        if faults:
            raise SortieError(f"systemd finds fault with the unit: {'; '.join(faults)}")
        secrets.values_in(self.environment_file)
        return content

    def install(self, plan: Plan) -> list[str]:
        """Write the files and have systemd start the unit; return what was done and what is left.

        Raises SortieError where something in the way is not ours.
        """
        content = self.checked(plan)
        told = [self._write(content), *self._prepare_secrets(plan)]
        left = [*plan.notes, *self._missing(plan)]
        lingering = [*self._lingering(plan.unit)]
        starts = f"which starts {'at your login' if lingering else 'with the machine'}"
        if not self._systemd.runs():
            left.append(
                f"systemd cannot be reached from here; where it can: {self._systemctl('enable')}"
            )
        else:
            self._systemd.do("daemon-reload")
            if left:
                self._systemd.do("enable", self._service)
                told.append(f"enabled {self._service}, {starts}")
                left.append(f"start it then: {self._systemctl('start')}")
            else:
                self._systemd.do("enable", self._service)
                self._systemd.do("restart", self._service)
                told.append(f"enabled and started {self._service}, {starts}")
        left += lingering
        return [*told, *(f"left to do: {each}" for each in left), *self._next_steps(plan)]

    def would_remove(self) -> list[str]:
        """Return what there is to remove. Raises SortieError where that is nothing of ours."""
        self._require_ours()
        return [f"would stop {self._service} and remove {self._unit_file}"]

    def uninstall(self) -> list[str]:
        """Stop the unit and remove what was made here; return what was done and what is left."""
        self._require_ours()
        told = []
        runs = self._systemd.runs()
        if runs:
            self._systemd.do("disable", "--now", self._service)
            told.append(f"stopped and disabled {self._service}")
        try:
            self._unit_file.unlink()
        except OSError as exc:
            raise SortieError(f"cannot remove {self._unit_file}: {exc.strerror}") from exc
        told.append(f"removed {self._unit_file}")
        if runs:
            self._systemd.do("daemon-reload")
            with suppress(SortieError):  # it is known only where it had failed
                self._systemd.do("reset-failed", self._service)
        there = self.environment_file.exists()
        if secrets.remove_untouched(self.environment_file):
            told += [f"removed {self.environment_file}"] if there else []
        else:
            told.append(f"left to do: {self.environment_file} was changed and is left to you")
        changes = self._unit_file.with_name(f"{self._service}.d")
        if changes.exists():
            told.append(f"left to do: {changes} holds changes of yours and is left to you")
        return told

    def _require_ours(self) -> None:
        try:
            content = self._unit_file.read_text(encoding="utf-8", errors="replace")
        except FileNotFoundError as exc:
            raise SortieError(
                f"there is no {self._unit_file}; name the unit with --name, or look at --user and"
                " --system"
            ) from exc
        except OSError as exc:
            raise SortieError(f"cannot read {self._unit_file}: {exc.strerror}") from exc
        if not is_ours(content):
            whose = "was changed since" if was_ours(content) else "was not written by this command"
            raise SortieError(
                f"{self._unit_file} {whose} and is left alone; remove it yourself, or choose"
                " another --name; changes belong into 'systemctl edit'"
            )

    def _write(self, content: str) -> str:
        if os.path.lexists(self._unit_file):
            self._require_ours()
            if self._unit_file.read_text(encoding="utf-8") == content:
                return f"{self._unit_file} is as it should be"
        fresh = self._unit_file.with_name(f".{self._service}.new")
        try:
            self._unit_file.parent.mkdir(parents=True, exist_ok=True)
            fresh.write_text(content, encoding="utf-8")
            fresh.chmod(0o644)
            fresh.replace(self._unit_file)
        except OSError as exc:
            fresh.unlink(missing_ok=True)
            raise SortieError(f"cannot write {self._unit_file}: {exc.strerror}") from exc
        return f"wrote {self._unit_file}"

    def _prepare_secrets(self, plan: Plan) -> Iterator[str]:
        if os.path.lexists(self.environment_file):
            return
        names = tuple(dict.fromkeys((*plan.required, *plan.useful)))
        taken = secrets.make(self.environment_file, names, plan.known)
        what = f"with {', '.join(taken)} from here" if taken else "for keys and tokens"
        yield f"wrote {self.environment_file}, mode 0600, {what}"

    def _missing(self, plan: Plan) -> Iterator[str]:
        there = secrets.values_in(self.environment_file).keys()
        missing = [name for name in plan.required if name not in there]
        if plan.useful and not there & set(plan.useful):
            missing += plan.useful[:1]
        if missing:
            yield f"give {' and '.join(missing)} a value in {self.environment_file}"
        if plan.overrides:
            shown = " and ".join(plan.overrides)
            yield f"{shown}, set in this shell, would have to stand in {self.environment_file}"

    def _lingering(self, unit: Unit) -> Iterator[str]:
        if unit.scope is Scope.USER and not self._systemd.lingers(unit.user):
            yield (
                f"'sudo loginctl enable-linger {unit.user}', or the daemon ends when you log out"
                " and does not start with the machine"
            )

    def _next_steps(self, plan: Plan) -> Iterator[str]:
        user = "--user " if plan.unit.scope is Scope.USER else ""
        yield f"look at it: {self._systemctl('status')}; journalctl {user}-u {self._service} -f"

    def _systemctl(self, verb: str) -> str:
        user = "--user " if self._unit_file.parent.name == "user" else ""
        now = "--now " if verb == "enable" else ""
        return f"systemctl {user}{verb} {now}{self._service}"


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
