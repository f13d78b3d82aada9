"""Logging is global: each test that configures it leaves it as it was."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Iterator

import pytest
import structlog


@pytest.fixture
def logging_restored() -> Iterator[None]:
    """Put structlog and the standard library's root logger back afterwards."""
    root = logging.getLogger()
    handlers, level, shown = list(root.handlers), root.level, warnings.showwarning

    yield

    logging.captureWarnings(False)
    warnings.showwarning = shown
    root.handlers[:] = handlers
    root.setLevel(level)
    structlog.reset_defaults()
