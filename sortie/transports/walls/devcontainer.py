"""What the development container of a repository says of its image: ``devcontainer.json``, see
https://containers.dev/implementors/json_reference.

The file is the repository's, and so it may not open the wall: of all that it can say, the image and
variables are taken. Nothing that it says of mounts, of arguments of the engine, of rights or of
commands is, and what is not is named.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from msgspec import Struct

PLACES = (".devcontainer/devcontainer.json", ".devcontainer.json")
"""Where the file is looked for, in this order."""

_BUILT = ("build", "dockerFile", "dockerComposeFile")
_ENVIRONMENTS = ("containerEnv", "remoteEnv")
_OF_EDITORS = frozenset(
    {
        "$schema",
        "name",
        "customizations",
        "forwardPorts",
        "portsAttributes",
        "otherPortsAttributes",
    }
)
"""What changes nothing of what runs."""

_PART = r"[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*"
_REFERENCE = re.compile(
    rf"(?:[A-Za-z0-9](?:[A-Za-z0-9.-]*[A-Za-z0-9])?(?::[0-9]+)?/)?{_PART}(?:/{_PART})*"
    r"(?::[A-Za-z0-9_][A-Za-z0-9_.-]{0,127})?(?:@sha256:[0-9a-f]{64})?",
    re.ASCII,
)
_FILES = frozenset(
    {"containers-storage", "dir", "docker", "docker-archive", "docker-daemon", "oci", "oci-archive"}
    | {"ostree", "sif", "tarball"}
)
"""Words before a colon by which podman looks for an image among the files of the machine."""

_STRING = r'("(?:\\.|[^"\\\n])*")'
_COMMENT = re.compile(rf"{_STRING}|//[^\n]*|/\*.*?\*/", re.DOTALL)
_LAST_COMMA = re.compile(rf"{_STRING}|,(?=\s*[}}\]])")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)


class DevcontainerRefused(Exception):
    """A file that names no image that may be had; what is wrong, as the end of a sentence."""


class Devcontainer(Struct, frozen=True, kw_only=True):
    """An image, the variables of its programs, and the names of what else was asked for."""

    image: str
    environ: Mapping[str, str]
    ignored: tuple[str, ...] = ()


def read_devcontainer(text: str) -> Devcontainer:
    """Read a ``devcontainer.json``, which may have comments. Raises DevcontainerRefused."""
    try:
        plain = _LAST_COMMA.sub(r"\1", _COMMENT.sub(r"\1 ", text.removeprefix("\ufeff")))
        said = json.loads(plain)
    except (ValueError, RecursionError) as exc:
        raise DevcontainerRefused(f"is no JSON with comments: {exc}") from None
    if not isinstance(said, dict):
        raise DevcontainerRefused("holds no object")
    for key in _BUILT:
        if key in said:
            raise DevcontainerRefused(
                f"has {key}, and images are not built here: build one, name it in sandbox.image or"
                " as image in this file"
            )
    image = said.get("image")
    if not isinstance(image, str):
        raise DevcontainerRefused("names no image")
    if not _REFERENCE.fullmatch(image) or image.partition(":")[0] in _FILES:
        raise DevcontainerRefused(f"has {image[:200]!r} as image, which is no name of one")
    environ: dict[str, str] = {}
    ignored = sorted(key for key in said if key not in {"image", *_ENVIRONMENTS} | _OF_EDITORS)
    for key in _ENVIRONMENTS:
        for name, value in _variables(said.get(key)):
            if value is None:
                ignored.append(f"{key}.{name}")
            else:
                environ[name] = value
    return Devcontainer(image=image, environ=environ, ignored=tuple(ignored))


def _variables(given: Any) -> Iterator[tuple[str, str | None]]:
    """Yield variables with their values, None for one that cannot be had: one that would have
    something of this machine in it, say."""
    if not isinstance(given, dict):
        return
    for name, value in given.items():
        plain = isinstance(value, str) and "${" not in value and "\0" not in value
        yield name, value if plain and _VARIABLE.fullmatch(name) else None
