"""What is wrong with the address of a server; pure."""

from __future__ import annotations

from collections.abc import Iterator

from sortie.config.report import Finding
from sortie.documents import Path
from sortie.model.addresses import has_more, is_loopback, split_endpoint


def address_findings(path: Path, address: str, example: str, secret: str) -> Iterator[Finding]:
    """Yield what is wrong with the address at ``path``: an error alone, or a warning.

    ``example`` is a right one, and ``secret`` is the key in which the credential belongs. No
    message holds what stands before the host or behind the path.
    """
    if (parts := split_endpoint(address)) is None:
        yield Finding(path=path, message=f"needs an address such as {example}")
    elif has_more(address, parts):
        message = (
            "must not hold a name, a password, a question mark or a '#'; "
            f"the key belongs in {secret}"
        )
        yield Finding(path=path, message=message)
    elif parts.scheme == "http" and not is_loopback(parts.hostname or ""):
        message = "has no https, so that anybody on the way can read the key"
        yield Finding(path=path, message=message, severity="warning")
