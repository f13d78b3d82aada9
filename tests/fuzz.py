"""Hold a property for new examples again and again, for as long as was asked for."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from typing import Any

import hypothesis
from hypothesis import strategies as st

SECONDS = "SORTIE_FUZZ_SECONDS"
"""The variable that says how long the slow fuzzing takes, for each test; 20 without it."""


def for_a_while(examples: st.SearchStrategy[Any], hold: Callable[[Any], None]) -> None:
    """Hold a property for new examples again and again, as long as the variable says."""
    until = time.monotonic() + float(os.environ.get(SECONDS, "20"))
    limits = hypothesis.settings(
        max_examples=500, database=None, phases=[hypothesis.Phase.generate, hypothesis.Phase.shrink]
    )
    while time.monotonic() < until:

        @hypothesis.seed(time.time_ns())
        @limits
        @hypothesis.given(examples)
        def again(example: Any) -> None:
            hold(example)

        again()
