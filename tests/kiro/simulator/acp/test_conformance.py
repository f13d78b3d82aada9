"""The simulator behind the ACP adapter keeps what real agents are held to."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
import trio

from sortie.agents import ADAPTERS
from sortie.testing.agent import CHECKS, Conformance, Status, read_scenarios, this_machine

HERE = Path(__file__).parent
ENGINES = {"v2": (), "v3": ("--agent-engine", "v3", "--auth-method", "cli")}
FAST = {
    "v2": (
        "turn.success",
        "turn.series",
        "stop.in-a-tool",
        "stop.deaf",
        "output.unknown",
        "end.unterminated",
        "resume.after-kill",
    ),
    "v3": ("turn.success", "resume.next-session"),
}
"""One of each group; the adapter itself is tried with its own stand-in in every run."""


def cases() -> list[Any]:
    """Return each engine with each check; most are for those who have time."""
    return [
        pytest.param(
            engine,
            check,
            id=f"{engine}-{check}",
            marks=() if check in FAST[engine] else pytest.mark.full,
        )
        for engine in ENGINES
        for check in CHECKS
    ]


@pytest.mark.parametrize(("engine", "check"), cases())
def test_a_promise_is_kept(engine: str, check: str, tmp_path: Path) -> None:
    """On this machine, by both of Kiro's engines; nothing is left untried."""
    scenarios = read_scenarios(HERE, tmp_path)
    assert isinstance(scenarios.command, tuple)
    subject = Conformance(
        adapter=ADAPTERS.load("acp"),
        command=(*scenarios.command, *ENGINES[engine]),
        scenarios=scenarios,
        env={"PATH": os.environ["PATH"], "HOME": str(tmp_path)},
        patience=60.0,
    )

    verdict = trio.run(subject.verdict, CHECKS[check], this_machine())

    assert verdict.status is Status.PASSED, verdict.reason
