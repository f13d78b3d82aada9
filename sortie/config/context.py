"""What decoding needs to know of the file's surroundings."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import PurePosixPath

from msgspec import Struct, field

from sortie.documents import Place
from sortie.model.hiding import repr_without


class Override(Struct, frozen=True, kw_only=True):
    """A value from outside WORKFLOW.md."""

    text: str
    place: Place

    __repr__ = repr_without("text")


class DecodeContext(Struct, frozen=True, kw_only=True):
    """Where a WORKFLOW.md stands, and what is around it.

    ``path`` is how the file is named in problems; ``directory`` is absolute; ``identity`` tells
    the file from every other on this machine. ``home`` is "" where there is none. ``env_file``
    holds the last ``SORTIE_*`` line of each name. ``flags`` are values of the command line by
    dotted key, ``server.port``; they win over all else.
    """

    path: str
    directory: PurePosixPath
    identity: str
    home: str
    env: Mapping[str, str] = field(default_factory=dict)
    env_file: Mapping[str, Override] = field(default_factory=dict)
    flags: Mapping[str, str] = field(default_factory=dict)

    __repr__ = repr_without("env")

    def lookup(self, name: str) -> str:
        """Return a variable's value, "" where it is unset; the environment comes first."""
        if value := self.env.get(name):
            return value
        line = self.env_file.get(name)
        return line.text if line else ""

    def state_directory(self) -> PurePosixPath | None:
        """Return where programs keep their state, None where neither variable says."""
        given = PurePosixPath(self.env.get("XDG_STATE_HOME", ""))
        if given.is_absolute():
            return given
        return PurePosixPath(self.home, ".local/state") if self.home.startswith("/") else None
