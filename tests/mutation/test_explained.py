"""What is said to change nothing is said of lines that are there."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.mutation.explained import Explained, explained

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize("entry", explained(), ids=lambda entry: entry.becomes)
def test_an_explained_mutant_is_one_of_a_line_that_is_there(entry: Explained) -> None:
    """An explanation goes when its line does."""
    lines = [line.strip() for line in (ROOT / entry.file).read_text().splitlines()]

    assert set(entry.was.splitlines()) <= set(lines)
    assert entry.becomes != entry.was
