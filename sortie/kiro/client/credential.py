"""Whether kiro-cli can work at all: without a credential its chat waits for a login for ever."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from sortie.kiro.client.errors import AuthenticationError, TurnTimeoutError
from sortie.kiro.client.outcome import said_on
from sortie.kiro.client.process import KiroProcess, Launch
from sortie.kiro.client.waits import Waits
from sortie.kiro.headless.arguments import WHOAMI
from sortie.model.secrets import unchanged

KEY_NAME = "KIRO_API_KEY"

_LIMIT = 15.0  # seconds


def has_key(environment: Mapping[str, str]) -> bool:
    """Tell whether there is a key; a bad one is told by the turn itself."""
    return bool(environment.get(KEY_NAME, "").strip())


class LoginCheck:
    """Asks ``kiro-cli whoami`` whether somebody is logged in. Raises as ``KiroProcess`` does."""

    def __init__(self, program: str, launch: Launch) -> None:
        asked = replace(launch, argv=(program, *WHOAMI), stdin=None, limit=_LIMIT)
        self.process = KiroProcess(asked)

    def run(self) -> Waits[None]:
        """Raise AuthenticationError where nobody is."""
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
