"""Where kiro-cli is, and whether it can work: without a credential its chat waits for a login."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping

from msgspec.structs import replace

from sortie.kiro.client.errors import AuthenticationError, CLINotFoundError, TurnTimeoutError
from sortie.kiro.client.outcome import said_on
from sortie.kiro.client.process import KiroLaunch, KiroProcess
from sortie.kiro.client.waits import Waits
from sortie.kiro.headless.arguments import KEY_NAME, WHOAMI
from sortie.model.secrets import unchanged

DEFAULT_PROGRAM = "kiro-cli"

_LIMIT = 15.0  # seconds


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


def has_key(environment: Mapping[str, str]) -> bool:
    """Tell whether there is a key; a bad one is told by the turn itself."""
    return bool(environment.get(KEY_NAME, "").strip())


class LoginCheck:
    """Asks ``kiro-cli whoami`` whether there is a login. Raises as ``KiroProcess`` does."""

    def __init__(self, program: str, launch: KiroLaunch) -> None:
        asked = replace(launch, argv=(program, *WHOAMI), stdin=None, limit=_LIMIT)
        self.process = KiroProcess(asked)

    def run(self) -> Waits[None]:
        """Raise AuthenticationError where there is none."""
        try:
            finished = yield from self.process.run()
        except TurnTimeoutError as exc:
            raise AuthenticationError(
                f"{KEY_NAME} is not set, and `kiro-cli whoami` did not answer within {_LIMIT:g} s"
            ) from exc
        if finished.status not in (0, None):
            said = said_on(finished.stderr, unchanged)
            raise AuthenticationError(
                f"{KEY_NAME} is not set, and nobody is logged in (`kiro-cli login`)"
                f"{f': {said}' if said else ''}",
                finished.status,
            )
