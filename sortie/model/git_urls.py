"""Addresses of git repositories: https, ssh, and paths."""

from __future__ import annotations

import re
from urllib.parse import urlsplit

from msgspec import Struct

_SCP = re.compile(r"(?:(?P<user>[\w.-]+)@)?(?P<host>[\w.-]+):(?P<path>(?!//)[^\s]+)")


class GitUrl(Struct, frozen=True, kw_only=True):
    """An address as git takes it; ``host`` is "" for a path of the machine itself.

    ``path`` is without ``.git`` and slashes around it, as ``owner/repository``.
    """

    text: str
    scheme: str
    host: str
    path: str
    port: int | None = None

    @property
    def is_http(self) -> bool:
        """Whether git sends name and password."""
        return self.scheme in ("http", "https")

    @property
    def root(self) -> str:
        """The scheme, host and port of an HTTP address."""
        return f"{self.scheme}://{self.host}" + (f":{self.port}" if self.port else "")


def parse_git_url(text: str) -> GitUrl:
    """Read an address of a repository. Raises ValueError for one that git would not take, or that
    holds a password."""
    if any(not char.isprintable() or char.isspace() for char in text) or text.startswith("-"):
        raise ValueError("needs an address without blanks, such as https://host/owner/repository")
    if text.startswith("/"):
        return GitUrl(text=text, scheme="file", host="", path=_plain(text))
    if "://" in text:
        parts = urlsplit(text)
        if parts.scheme not in ("https", "http", "ssh", "file"):
            raise ValueError(f"{parts.scheme}:// is no address that is taken: use https or ssh")
        if parts.scheme == "file":
            return GitUrl(text=parts.path, scheme="file", host="", path=_plain(parts.path))
        if parts.password is not None or (parts.scheme != "ssh" and parts.username is not None):
            raise ValueError("must hold no name or password; see repository.credential")
        if not parts.hostname or not _plain(parts.path) or parts.query or parts.fragment:
            raise ValueError("needs a host and the path of a repository")
        return GitUrl(
            text=text,
            scheme=parts.scheme,
            host=parts.hostname,
            port=parts.port,
            path=_plain(parts.path),
        )
    if match := _SCP.fullmatch(text):
        return GitUrl(text=text, scheme="ssh", host=match["host"], path=_plain(match["path"]))
    raise ValueError("needs an address, such as https://host/owner/repository or an absolute path")


def _plain(path: str) -> str:
    return path.strip("/").removesuffix(".git")
