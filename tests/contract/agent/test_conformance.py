"""Every adapter keeps what the port promises, with a program that behaves as badly as it can."""

from __future__ import annotations

from pathlib import Path

import pytest

from sortie.agents import ADAPTERS
from sortie.testing.agent import CHECKS
from tests.contract.agent.kinds import FOLDERS, require_kept

EXAMPLES = frozenset({"shell", "toy"})
SHORT = ("start.", "turn.", "end.")
"""What tells whether the kit can hold an example of the pages; the rest of it with --full only."""

EVERYTHING = [
    pytest.param(
        kind,
        check,
        marks=pytest.mark.full if kind in EXAMPLES and not check.startswith(SHORT) else (),
    )
    for kind in FOLDERS
    for check in CHECKS
]


@pytest.mark.parametrize(("kind", "check"), EVERYTHING)
def test_a_promise_is_kept(kind: str, check: str, tmp_path: Path) -> None:
    """On this machine; what a kind cannot be made to do says why."""
    require_kept(kind, check, tmp_path)


def test_every_kind_is_held_to_this() -> None:
    """No adapter that is built in stays outside of the suite."""
    assert set(ADAPTERS.built_in) <= set(FOLDERS)
    assert all((folder / "scenarios.toml").is_file() for folder in FOLDERS.values())
