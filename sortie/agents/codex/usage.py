"""Tokens of threads, and the limits of an account; pure."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from sortie.agents.usage_limit import from_seconds
from sortie.json_rpc import values
from sortie.model.turns import Usage

_COUNTS = ("inputTokens", "outputTokens", "cachedInputTokens", "cacheWriteInputTokens")
_THREADS = 1000
"""Threads of subagents whose sums are known; of further ones nothing is counted."""

Counts = tuple[int, int, int, int]


class ThreadUsage:
    """What the threads of a process use: Codex tells sums since each thread began.

    ``model`` is that of the session's thread; subagents may have another, which is not told.
    """

    def __init__(self) -> None:
        self.model: str | None = None
        self._sums: dict[str, Counts] = {}

    def begun(self, thread_id: str) -> None:
        """Take that a thread is new, and has used nothing."""
        self._sums[thread_id] = (0, 0, 0, 0)

    def take(self, params: Mapping[str, Any], *, ours: bool, counts: bool) -> list[Usage]:
        """Take a ``thread/tokenUsage/updated`` and return what it adds.

        Where it does not count (``counts``), it tells what the thread had used before. The first
        one about a thread that is not known counts with its last call.
        """
        thread = values.text(params, "threadId") or ""
        told = values.mapping(params, "tokenUsage")
        now = _counts(values.mapping(told, "total"))
        if now is None or (thread not in self._sums and len(self._sums) >= _THREADS):
            return []
        before = self._sums.get(thread)
        self._sums[thread] = now
        if not counts:
            return []
        if before is None:
            more = _counts(values.mapping(told, "last")) or (0, 0, 0, 0)
        else:
            pairs = zip(now, before, strict=True)
            more = tuple(max(a - b, 0) for a, b in pairs)  # type: ignore[assignment]
        share = _share(told) if ours else None
        if not any(more) and share is None:
            return []
        tokens, output, cached, written = more
        return [
            Usage(
                model=self.model,
                input_tokens=tokens,
                output_tokens=output,
                cached_tokens=cached,
                cache_write_tokens=written,
                context_share=share,
            )
        ]


class AccountLimits:
    """The windows in which an account may use so much, as they were told last."""

    def __init__(self) -> None:
        self._windows: list[Mapping[str, Any]] = []

    def take(self, params: Mapping[str, Any]) -> None:
        """Take an ``account/rateLimits/updated``; one without windows leaves those before."""
        limits = values.mapping(params, "rateLimits")
        told = [
            values.mapping(limits, name) for name in ("primary", "secondary", "individualLimit")
        ]
        self._windows = [window for window in told if window] or self._windows

    @property
    def resets_at(self) -> datetime | None:
        """When the last of the windows begins anew that are used up; None where none is."""
        ends = [
            end
            for window in self._windows
            if _is_used_up(window) and (end := from_seconds(window.get("resetsAt"))) is not None
        ]
        return max(ends, default=None)


def _is_used_up(window: Mapping[str, Any]) -> bool:
    used, left = values.amount(window, "usedPercent"), values.amount(window, "remainingPercent")
    return (used is not None and used >= 100) or left == 0


def _counts(told: Mapping[str, Any]) -> Counts | None:
    tokens, output, cached, written = (values.count(told, name) for name in _COUNTS)
    if tokens is None or output is None:
        return None
    return tokens, output, cached or 0, written or 0


def _share(told: Mapping[str, Any]) -> float | None:
    used = values.count(told, "last", "totalTokens")
    size = values.count(told, "modelContextWindow")
    return min(used / size, 1.0) if used is not None and size else None
