"""Where kiro-cli is."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping

from sortie.kiro.client.errors import CLINotFoundError

DEFAULT_PROGRAM = "kiro-cli"


def find_program(cli_path: str | os.PathLike[str] | None, environment: Mapping[str, str]) -> str:
    """Return the absolute path of kiro-cli: ``cli_path``, or a name on PATH.

    Raises CLINotFoundError. kiro-cli is not part of this package.
    """
    named = os.path.expanduser(os.fspath(cli_path)) if cli_path is not None else DEFAULT_PROGRAM
    found = shutil.which(named, path=environment.get("PATH", os.defpath)) if named else None
    if found is not None:
        return os.path.abspath(found)
    if cli_path is None:
        raise CLINotFoundError(
            f"there is no {DEFAULT_PROGRAM} on PATH; install it (https://kiro.dev/cli), or name it"
            " by cli_path"
        )
    missing = "is not executable" if os.path.isfile(named) else "does not exist"
    if os.sep not in named:
        missing = "is not on PATH"
    raise CLINotFoundError(f"cli_path: {named!r} {missing}")
