"""The programs of systemd, as far as they are installed and systemd runs."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from msgspec import Struct

from sortie.cli.service.unit import Scope
from sortie.model import SortieError

_PATIENCE = 30
_STARTING = 300  # what an earlier daemon left running is ended first
_RUNNING = frozenset({"running", "degraded", "starting", "initializing", "maintenance"})


class Places(Struct, frozen=True, kw_only=True):
    """Where units and the files with their secrets stand."""

    units: Path
    secrets: Path

    @classmethod
    def of(cls, scope: Scope) -> Places:
        """Return those of the system, or of the user who asks."""
        if scope is Scope.SYSTEM:
            return cls(units=Path("/etc/systemd/system"), secrets=Path("/etc/sortie"))
        config = Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config")
        return cls(units=config / "systemd/user", secrets=config / "sortie")


class Systemd:
    """One manager, the system's or the user's."""

    def __init__(self, scope: Scope) -> None:
        self._scope = scope

    def runs(self) -> bool:
        """Tell whether the manager runs and can be asked."""
        done = _run(self._systemctl("is-system-running"), _PATIENCE)
        return done is not None and done.stdout.strip() in _RUNNING

    def do(self, *arguments: str) -> None:
        """Have systemctl do something. Raises SortieError with its last line where it fails."""
        command = self._systemctl(*arguments)
        done = _run(command, _STARTING)
        if done is None or done.returncode != 0:
            said = "" if done is None else _last_line(done.stderr or done.stdout)
            raise SortieError(f"'{' '.join(command)}' failed: {said or 'no answer'}")

    def faults(self, name: str, text: str) -> list[str] | None:
        """Return what systemd finds wrong with a unit, None where it cannot be asked."""
        user = ["--user"] if self._scope is Scope.USER else []
        with TemporaryDirectory() as folder:
            path = Path(folder) / name
            path.write_text(text, encoding="utf-8")
            command = ["systemd-analyze", *user, "verify", "--man=no", str(path)]
            # A user's one wants a directory, which there is none of without a login.
            done = _run(command, _PATIENCE, {"XDG_RUNTIME_DIR": folder} | dict(os.environ))
            if done is None:
                return None
            # It also tells of other units of this machine.
            lines = [line.replace(str(path), name) for line in done.stderr.splitlines()]
            found = [line for line in lines if name in line]
        return found or (lines[-1:] if done.returncode else [])

    def lingers(self, user: str) -> bool | None:
        """Tell whether a user's units run while nobody is logged in; None: not known."""
        done = _run(["loginctl", "show-user", user, "--property=Linger"], _PATIENCE)
        if done is None or done.returncode != 0:
            return (Path("/var/lib/systemd/linger") / user).exists() or None
        return done.stdout.strip() == "Linger=yes"

    def _systemctl(self, *arguments: str) -> list[str]:
        user = ["--user"] if self._scope is Scope.USER else []
        return ["systemctl", *user, *arguments]


def _run(
    command: Sequence[str], seconds: int, environ: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str] | None:
    """Run a program and return what it said, None where it is not installed or does not answer."""
    if shutil.which(command[0]) is None:
        return None
    try:
        return subprocess.run(
            command,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=seconds,
            check=False,
            env=environ,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None


def _last_line(text: str) -> str:
    return next((line for line in reversed(text.splitlines()) if line.strip()), "")
