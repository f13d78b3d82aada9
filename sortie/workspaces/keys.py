"""Which directory name an issue's identifier gets; pure."""

from __future__ import annotations

import hashlib
import re

from sortie.model import WorkspaceError

KEY_LIMIT = 255
"""Bytes that a file name may have on the file systems in use."""

_FOREIGN = re.compile(r"[^A-Za-z0-9._-]")
_DIGEST_SIZE = 16
_LIKE_A_DIGEST = re.compile(rf"-[0-9a-f]{{{_DIGEST_SIZE}}}\Z")


def workspace_key(identifier: str) -> str:
    """Return the directory name of an issue: ASCII, one path part, at most KEY_LIMIT bytes.

    Foreign characters become ``_``. What was changed, had to be cut, or looks as if it had been,
    ends in a digest of the whole identifier, so that two identifiers keep apart, though one was
    made to look like the other's key. Raises WorkspaceError
    for an identifier that no directory can be named after.
    """
    if identifier in ("", ".", ".."):
        raise WorkspaceError(
            f"an issue with the identifier {identifier!r} can have no workspace; rename it"
        )
    key = _FOREIGN.sub("_", identifier)
    if key == identifier and len(key) <= KEY_LIMIT and not _LIKE_A_DIGEST.search(key):
        return key
    digest = hashlib.sha256(identifier.encode("utf-8", "surrogatepass")).hexdigest()[:_DIGEST_SIZE]
    return f"{key[: KEY_LIMIT - _DIGEST_SIZE - 1]}-{digest}"
