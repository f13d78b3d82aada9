"""Read what ``kiro-cli whoami`` says about the credential."""

from __future__ import annotations

from sortie.kiro.text import strip_escapes
from sortie.kiro.transcript import AUTHENTICATION_FAILED
from sortie.transports import Exit

AUTHENTICATED = "Authenticated with API key"

_SHOWN = 300


def credential_problem(end: Exit, output: str) -> str | None:
    """Tell what is wrong with the credential; None where it is good.

    ``output`` is stdout and stderr together, the key already taken out. An exit status of 0 is not
    enough: the output must confirm the key.
    """
    text = " ".join(strip_escapes(output).split())
    shown = text[:_SHOWN] or "no output"
    if AUTHENTICATION_FAILED in text:
        return "KIRO_API_KEY is invalid or expired; make a new key"
    if end.signal is not None:
        return f"`kiro-cli whoami` was ended by signal {end.signal}: {shown}"
    if end.status != 0:
        return f"`kiro-cli whoami` exited with status {end.status}: {shown}"
    if AUTHENTICATED not in text:
        return f"`kiro-cli whoami` did not confirm KIRO_API_KEY: {shown}"
    return None
