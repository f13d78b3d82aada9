"""The text of the unit, for the system's manager or a user's, made from one template.

Rule 1: a unit that was written here says so in its first lines, with a digest of the rest, so that
one that somebody has changed is told from it.
Rule 2: no secret stands in a unit.
"""

from __future__ import annotations

import hashlib
from enum import StrEnum
from importlib.resources import files

from msgspec import Struct

from sortie.model import SortieError

_MARK = "# Written by 'sortie service install', which knows it by this digest: "

_NEEDS_PRIVILEGES = frozenset(
    {
        "AmbientCapabilities",
        "CapabilityBoundingSet",
        "PrivateDevices",
        "PrivateMounts",
        "PrivateTmp",
        "ProtectClock",
        "ProtectHome",
        "ProtectKernelModules",
        "ProtectProc",
        "ProtectSystem",
        "RemoveIPC",
        "User",
    }
)
"""What a user's manager cannot do, or does already; see systemd.exec(5)."""

_SYSTEMS_OWN = frozenset({"Wants", "After"})
"""What names units that a user's manager does not have."""

_HOMES = ("/home/", "/root/", "/run/user/")


class Scope(StrEnum):
    """Whose manager runs the unit."""

    SYSTEM = "system"
    USER = "user"


class Unit(Struct, frozen=True, kw_only=True):
    """What a unit is made from: absolute paths, the program's command line, and who runs it."""

    scope: Scope
    workflow: str
    program: tuple[str, ...]
    user: str
    search_path: str
    environment_file: str

    def text(self) -> str:
        """Return the unit without its first lines. Raises SortieError where a path cannot stand
        in one."""
        directory = self.workflow.rpartition("/")[0] or "/"
        everywhere = (*self.program, self.workflow, self.search_path)
        at_home = any(home in f"{path}/" for path in everywhere for home in _HOMES)
        values = {
            "WORKFLOW": _whole(self.workflow),
            "USER": _whole(self.user),
            "DIRECTORY": _whole(directory),
            "PATH": _quoted_inside(self.search_path),
            "ENVIRONMENT_FILE": _whole(self.environment_file),
            "EXEC_START": " ".join(map(_argument, (*self.program, "run", self.workflow))),
            "PROTECT_HOME": "no" if at_home else "yes",
        }
        text = files("sortie.cli.service").joinpath("sortie.service").read_text(encoding="utf-8")
        for name, value in values.items():
            text = text.replace(f"@{name}@", value)
        return text if self.scope is Scope.SYSTEM else _for_user(text)


def marked(text: str) -> str:
    """Return a file's text under a line by which it is known again."""
    return f"{_MARK}{_digest(text)}\n{text}"


def is_ours(content: str) -> bool:
    """Tell whether a file was written here and is as it was."""
    first, _, rest = content.partition("\n")
    return first == f"{_MARK}{_digest(rest)}"


def was_ours(content: str) -> bool:
    """Tell whether a file was written here, whatever has become of it."""
    return content.startswith(_MARK)


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def _for_user(text: str) -> str:
    dropped = _NEEDS_PRIVILEGES | _SYSTEMS_OWN
    lines = [line for line in text.splitlines() if line.partition("=")[0] not in dropped]
    return "\n".join(lines).replace("multi-user.target", "default.target") + "\n"


def _checked(text: str) -> str:
    if not text.isprintable():
        raise SortieError(f"{text!r} cannot stand in a unit of systemd; give it a plain name")
    return text


def _whole(text: str) -> str:
    """Return a value that is all of a line; ``%`` begins a specifier there."""
    return _checked(text).replace("%", "%%")


def _quoted_inside(text: str) -> str:
    return _whole(text).replace("\\", "\\\\").replace('"', '\\"')


def _argument(text: str) -> str:
    """Return an argument of ExecStart=, see systemd.service(5)."""
    plain = _whole(text).replace("$", "$$")
    if text and not set(text) & set(" \"'\\;"):
        return plain
    return '"' + plain.replace("\\", "\\\\").replace('"', '\\"') + '"'
