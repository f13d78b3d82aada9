"""What is shown of the checks: a table whose rows come as they are made, or JSON at the end."""

from __future__ import annotations

import json
from collections.abc import Sequence

from msgspec.structs import asdict

from sortie.model.texts import NOT_ON_A_LINE, cut
from sortie.testing.agent.check import CHECKS
from sortie.testing.checks import CheckVerdict, Status

_REASON = 500  # characters
_STATUS = max(len(status) for status in Status)


def heading() -> str:
    """Return the table's first row."""
    return f"{'result':<{_STATUS}}  {'check':<{_width()}}  seconds  promise"


def row(verdict: CheckVerdict) -> str:
    """Return a verdict as a row, with the reason below it where it did not pass."""
    line = f"{verdict.status:<{_STATUS}}  {verdict.check:<{_width()}}  {verdict.seconds:7.2f}"
    reason = f"\n{'':{_STATUS}}  {_on_a_line(verdict.reason)}" if verdict.reason else ""
    return f"{line}  {verdict.promise}{reason}"


def summary(verdicts: Sequence[CheckVerdict]) -> str:
    """Return how many checks came to what."""
    counts = {status: sum(v.status is status for v in verdicts) for status in Status}
    return ", ".join(f"{count} {status}" for status, count in counts.items())


def as_json(kind: str, host: str, verdicts: Sequence[CheckVerdict]) -> str:
    """Return the verdicts as one object, with the counts."""
    counts = {
        status.replace(" ", "_"): sum(v.status is status for v in verdicts) for status in Status
    }
    rows = [asdict(verdict) for verdict in verdicts]
    return json.dumps({"kind": kind, "host": host, **counts, "checks": rows}, indent=2)


def _width() -> int:
    return max(map(len, CHECKS))


def _on_a_line(text: str) -> str:
    return NOT_ON_A_LINE.sub(" ", cut(text, _REASON))
