"""What is around a workflow file: its directory, the environment, the user's home."""

from __future__ import annotations

import os
import pwd
from collections.abc import Mapping
from pathlib import Path, PurePosixPath

from sortie.config.context import DecodeContext, Override


def surroundings(
    path: Path,
    env: Mapping[str, str],
    env_file: Mapping[str, Override],
    flags: Mapping[str, str],
) -> DecodeContext:
    """Return what decoding needs to know of a file that need not exist."""
    absolute = path.absolute()
    # The link itself is not resolved: what a mounted configuration links to changes with it.
    identity = os.path.join(os.path.realpath(absolute.parent), absolute.name)
    return DecodeContext(
        path=str(path),
        directory=PurePosixPath(absolute.parent),
        identity=identity,
        home=env.get("HOME") or _home(),
        env=env,
        env_file=env_file,
        flags=flags,
    )


def _home() -> str:
    try:
        return pwd.getpwuid(os.getuid()).pw_dir
    except KeyError:
        return ""
