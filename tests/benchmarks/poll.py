"""What a poll of many issues costs of which none may run."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from statistics import median

from tests.benchmarks.place import BenchmarkPlace, Daemon, benchmark_place
from tests.benchmarks.row import Scale, Value, middle

ISSUES = 10_000
STEPS = 10
SETTLED = 2.5
"""Seconds after which a file that was written is known not to be written again unnoticed."""

REST = 0.3
"""Seconds after a poll's end in which what still belongs to it is done."""


def polls(scale: Scale) -> Mapping[str, Value]:
    """Measure polls of blocked issues in both forms of files, in milliseconds of processor time."""
    count = scale.of(ISSUES, 50)
    return poll_markdown(count, scale) | poll_json(count, scale, "poll.json")


def poll_markdown(count: int, scale: Scale) -> dict[str, Value]:
    """Measure a directory of Markdown issues; the baseline asks for each file's status."""
    with benchmark_place() as place:
        for number in range(count):
            path = place.issues / f"N-{number}.md"
            path.write_text(_markdown(number, 0))

        def change(step: int) -> None:
            _replace(place.issues / f"N-{step % count}.md", _markdown(step % count, step + 1))

        def bare() -> None:
            for entry in os.scandir(place.issues):
                entry.stat()

        place.configure()
        return _polls(place, change, bare, scale, "poll.markdown")


def poll_json(count: int, scale: Scale, name: str, steps: int = STEPS) -> dict[str, Value]:
    """Measure a JSON list of issues; the baseline reads and parses it."""
    with benchmark_place() as place:
        path = place.root / "issues.json"
        path.write_text(_json(count, -1))

        def change(step: int) -> None:
            _replace(path, _json(count, step))

        def bare() -> None:
            json.loads(path.read_bytes())

        place.configure(file={"path": "issues.json"})
        return _polls(place, change, bare, scale, name, steps)


def _polls(
    place: BenchmarkPlace,
    change: Callable[[int], None],
    bare: Callable[[], None],
    scale: Scale,
    name: str,
    steps: int = STEPS,
) -> dict[str, Value]:
    place.write_agent("")
    unchanged, changed, base = [], [], []
    with place.daemon(level="debug") as daemon:
        daemon.wait("poll.completed")
        time.sleep(scale.of(SETTLED, 0.0))
        _poll(daemon, scale)
        for step in range(scale.of(steps, 2)):
            unchanged.append(_poll(daemon, scale))
            change(step)
            changed.append(_poll(daemon, scale))
            time.sleep(scale.of(SETTLED, 0.0))
            _poll(daemon, scale)  # the one after which the change is old news
            began = time.thread_time()
            bare()
            base.append((time.thread_time() - began) * 1e3)
    return {
        f"{name}.unchanged": Value(
            ours=middle(unchanged), baseline=median(base), also={"one changed": middle(changed)}
        )
    }


def _poll(daemon: Daemon, scale: Scale) -> float:
    """Have the daemon poll, and return the milliseconds of processor time that this took."""
    done = len(daemon.lines("poll.completed"))
    before = daemon.spent().own
    daemon.refresh()
    daemon.wait("poll.completed", done + 1)
    time.sleep(scale.of(REST, 0.0))
    return (daemon.spent().own - before) * 1e3


def _markdown(number: int, step: int) -> str:
    return (
        f"---\ntitle: Issue {number} as it stands after {step} changes\nstate: Todo\n"
        "labels: [backend]\npriority: 2\nblocked_by: [ELSEWHERE-1]\n---\n"
        "What is to be done is described in some words here.\n"
    )


def _json(count: int, step: int) -> str:
    issues = [
        {
            "identifier": f"N-{number}",
            "title": f"Issue {number}" + (" changed" * (number == step % count) * (step >= 0)),
            "state": "Todo",
            "blocked_by": ["ELSEWHERE-1"],
        }
        for number in range(count)
    ]
    return json.dumps(issues)


def _replace(path: Path, text: str) -> None:
    fresh = path.with_name(f".{path.name}.new")
    fresh.write_text(text)
    fresh.rename(path)
