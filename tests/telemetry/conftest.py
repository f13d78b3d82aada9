"""Logging is global: each test that configures it leaves it as it was."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Iterator

import pytest

from tests.logs import captured_log


@pytest.fixture
def logging_restored() -> Iterator[None]:
    """Put the log and the standard library's root logger back afterwards."""
    root = logging.getLogger()
    handlers, level, shown = list(root.handlers), root.level, warnings.showwarning

    with captured_log():
        yield

    logging.captureWarnings(False)
    warnings.showwarning = shown
    root.handlers[:] = handlers
    root.setLevel(level)
