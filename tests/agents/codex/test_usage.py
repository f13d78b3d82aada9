"""What the threads of a process have used, and when limits end."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from sortie.agents.codex.usage import AccountLimits, ThreadUsage


def told(total: tuple[int, int], last: tuple[int, int], thread: str = "t") -> dict[str, Any]:
    """Return a notification with sums of input and output tokens."""

    def counts(tokens: tuple[int, int]) -> dict[str, int]:
        return {"inputTokens": tokens[0], "outputTokens": tokens[1], "totalTokens": sum(tokens)}

    usage = {"total": counts(total), "last": counts(last), "modelContextWindow": 1000}
    return {"threadId": thread, "tokenUsage": usage}


def test_a_compaction_counts_by_the_sums() -> None:
    """Its last call is told as nothing, and what the context holds."""
    usage = ThreadUsage()
    usage.begun("t")
    calls = [told((300, 20), (300, 20)), told((400, 40), (0, 0)), told((500, 60), (100, 20))]

    counts = [usage.take(each, ours=True, counts=True)[0] for each in calls]

    assert [(u.input_tokens, u.output_tokens) for u in counts] == [(300, 20), (100, 20), (100, 20)]


def test_a_thread_that_is_not_known_counts_with_its_last_call() -> None:
    """What it had used before was not told."""
    (used,) = ThreadUsage().take(told((500, 60), (100, 20)), ours=True, counts=True)

    assert (used.input_tokens, used.output_tokens) == (100, 20)


def test_sums_that_fall_count_nothing() -> None:
    """They are no use that could be taken back."""
    usage = ThreadUsage()
    usage.take(told((500, 60), (100, 20)), ours=True, counts=False)

    (used,) = usage.take(told((50, 6), (10, 2)), ours=True, counts=True)

    assert (used.input_tokens, used.output_tokens) == (0, 0)


@pytest.mark.parametrize(
    ("primary", "secondary", "end"),
    [
        ({"usedPercent": 100, "resetsAt": 100}, {"usedPercent": 100, "resetsAt": 200}, 200),
        ({"usedPercent": 100, "resetsAt": 100}, {"usedPercent": 99, "resetsAt": 200}, 100),
        ({"usedPercent": 10, "resetsAt": 100}, None, None),
        ({"usedPercent": 100, "resetsAt": "soon"}, [], None),
    ],
)
def test_a_limit_ends_with_the_last_window_that_is_used_up(
    primary: object, secondary: object, end: int | None
) -> None:
    """Windows that are not used up do not count."""
    limits = AccountLimits()

    limits.take({"rateLimits": {"primary": primary, "secondary": secondary}})
    limits.take({"rateLimits": {"primary": None, "secondary": None}})

    assert limits.resets_at == (None if end is None else datetime.fromtimestamp(end, UTC))
