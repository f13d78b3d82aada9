"""Install and uninstall the unit; what is done is told in lines."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress

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
        if not self._systemd.runs():
            left.append(
                f"systemd cannot be reached from here; where it can: {self._systemctl('enable')}"
            )
        else:
            self._systemd.do("daemon-reload")
            if left:
                self._systemd.do("enable", self._service)
                told.append(f"enabled {self._service}, which starts with the machine")
                left.append(f"start it then: {self._systemctl('start')}")
            else:
                self._systemd.do("enable", self._service)
                self._systemd.do("restart", self._service)
                told.append(f"enabled and started {self._service}, which starts with the machine")
        left += self._lingering(plan.unit)
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
