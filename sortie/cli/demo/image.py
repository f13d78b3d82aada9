"""The image of a demo's containers: empty directories, into which this machine's are mounted.

It needs no registry. What the simulated agent needs, the system's programs and the interpreter, is
seen read-only in it.
"""

from __future__ import annotations

import os
import shlex
import shutil
import sys
import tarfile
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from sortie.model import SortieError

IMAGE = "localhost/sortie-demo:1"

_PODMAN = "podman"

_DIRECTORIES = ("usr", "etc", "proc", "sys", "dev", "run", "tmp", "var", "root", "home")
_OF_SYSTEM = ("bin", "sbin", "lib", "lib32", "lib64", "libx32")
"""Links into /usr on most systems, and directories on others."""


def require_image(engine: str, environ: Mapping[str, str]) -> None:
    """Have the image in an engine. Raises SortieError."""
    import trio

    trio.run(_require, engine, environ)


async def _require(engine: str, environ: Mapping[str, str]) -> None:
    from sortie.transports.walls.container_engine import ContainerEngine

    try:
        found = await ContainerEngine.find(engine, environ)
        if await found.try_("image", "inspect", IMAGE):
            return
        with tempfile.TemporaryDirectory(prefix="sortie-demo-") as place:
            archive = Path(place, "image.tar")
            write_archive(archive)
            await found.ask("import", str(archive), IMAGE)
    except SortieError as error:
        raise SortieError(f"the demo's image cannot be made: {error}") from error


def write_archive(file: Path) -> None:
    """Write the file system of the image as a tar."""
    with tarfile.open(file, mode="w") as archive:
        for name in (*_DIRECTORIES, *_OF_SYSTEM):
            entry = tarfile.TarInfo(name)
            entry.type, entry.mode = tarfile.DIRTYPE, 0o755
            if os.path.islink(f"/{name}"):
                entry.type, entry.linkname = tarfile.SYMTYPE, os.readlink(f"/{name}").lstrip("/")
            elif not os.path.isdir(f"/{name}"):
                continue
            archive.addfile(entry)


def engine_program(engine: str, directory: Path) -> str:
    """Return what a demo's settings name as the engine."""
    return engine if engine != _PODMAN else str(directory.absolute() / "data" / _PODMAN)


def write_engine_program(engine: str, directory: Path, environ: Mapping[str, str]) -> None:
    """Have podman keep its images where it always does.

    That is below XDG_DATA_HOME, which in a demo is the place of the simulator's conversations.
    """
    if engine != _PODMAN:
        return
    usual = environ.get("XDG_DATA_HOME")
    change = "-u XDG_DATA_HOME" if usual is None else shlex.quote(f"XDG_DATA_HOME={usual}")
    program = shlex.quote(shutil.which(_PODMAN, path=environ.get("PATH")) or _PODMAN)
    place = Path(engine_program(engine, directory))
    try:
        place.parent.mkdir(exist_ok=True)
        place.write_text(f'#!/bin/sh\nexec env {change} {program} "$@"\n')
        place.chmod(0o755)
    except OSError as error:
        raise SortieError(f"cannot write {place}: {error.strerror}") from error


def seen_inside(package: Path) -> Sequence[str]:
    """Return what the simulated agent needs to see; ``package`` is where Sortie is installed."""
    system = [f"/{name}" for name in _OF_SYSTEM if not os.path.islink(f"/{name}")]
    wanted = {"/usr", "/etc/alternatives", "/nix/store", *system}
    wanted |= {sys.prefix, sys.base_prefix, str(package)}
    paths = sorted(path for path in wanted if os.path.isdir(path))
    return [one for one in paths if not any(one.startswith(f"{other}/") for other in paths)]
