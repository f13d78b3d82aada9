"""What the command line says about a daemon."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from msgspec import Struct

from sortie.model.hiding import repr_without


class RunOptions(Struct, frozen=True, kw_only=True):
    """What the command line says; None leaves it to WORKFLOW.md and the environment."""

    workflow: Path
    environ: Mapping[str, str]
    env_file: Path | None = None
    host: str | None = None
    port: int | None = None
    log_level: str | None = None
    log_format: str | None = None
    exit_when_idle: bool = False
    content: bytes | None = None

    __repr__ = repr_without("environ", "content")
    """What the workflow file holds, where it does not stand at ``workflow``."""

    @property
    def colours(self) -> bool:
        """Whether the environment lets a terminal have colours; see no-color.org."""
        return not self.environ.get("NO_COLOR") and self.environ.get("TERM") != "dumb"

    def flags(self) -> dict[str, str]:
        """Return the settings that were given as options, by dotted key."""
        given = {
            "server.host": self.host,
            "server.port": None if self.port is None else str(self.port),
            "logging.level": self.log_level,
            "logging.format": self.log_format,
        }
        return {key: value for key, value in given.items() if value is not None}
