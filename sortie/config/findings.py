"""A finding about several settings together, before it is reported at its place."""

from __future__ import annotations

from msgspec import Struct

from sortie.documents import Path


class Finding(Struct, frozen=True, kw_only=True):
    """Something wrong with the setting at ``path``; ``needs`` are others that it depends on.

    ``severity`` is ``error`` or ``warning``. ``because`` is the setting to point at instead, where
    ``path`` is missing and that one asks for it.
    """

    path: Path
    message: str
    severity: str = "error"
    needs: tuple[Path, ...] = ()
    because: Path | None = None
