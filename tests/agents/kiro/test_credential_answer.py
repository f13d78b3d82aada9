"""What whoami says."""

from __future__ import annotations

import pytest

from sortie.agents.kiro.credential import credential_problem
from sortie.transports import Exit

GOOD = "\x1b[32mAuthenticated with API key\x1b[0m\n"
BAD = "Authentication failed. Your API key may be invalid or expired."


def test_a_confirmed_key_is_good() -> None:
    """Exit 0 and the success marker, styled or not, accept the key."""
    assert credential_problem(Exit(status=0), GOOD) is None


@pytest.mark.parametrize(
    ("end", "output", "problem"),
    [
        (Exit(status=0), BAD, "KIRO_API_KEY is invalid or expired"),
        (Exit(status=1), BAD, "KIRO_API_KEY is invalid or expired"),
        (Exit(status=0), GOOD + BAD, "KIRO_API_KEY is invalid or expired"),
        (Exit(status=1), GOOD, "`kiro-cli whoami` exited with status 1"),
        (Exit(status=1), "Not\nlogged in", "`kiro-cli whoami` exited with status 1: Not logged in"),
        (Exit(signal=9), GOOD, "`kiro-cli whoami` was ended by signal 9"),
        (Exit(), GOOD, "`kiro-cli whoami` exited with status None"),
        (Exit(status=0), "", "`kiro-cli whoami` did not confirm KIRO_API_KEY: no output"),
    ],
)
def test_anything_else_is_a_problem(end: Exit, output: str, problem: str) -> None:
    """No exit status and no output but the good one passes, and the message says which it was."""
    assert (credential_problem(end, output) or "").startswith(problem)
