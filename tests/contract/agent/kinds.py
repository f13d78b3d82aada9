"""The adapters that are held to the kit, each with a program and what that can be made to do."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
import toy_agent
import trio

from sortie.agents import ADAPTERS
from sortie.testing.agent import (
    CHECKS,
    CheckVerdict,
    Conformance,
    ConformanceCheck,
    Status,
    Subject,
    open_host,
    read_scenarios,
    this_machine,
)
from tests.contract.agent import shell_agent
from tests.transports.ssh.sshd import Sshd

FOLDERS = {
    "shell": Path(shell_agent.__file__).parent / "shell",
    "toy": Path(toy_agent.__file__).parent,
    **{
        kind: Path(__file__).parents[2] / "agents" / kind.replace("-", "_")
        for kind in ADAPTERS.built_in
    },
}
"""Where the scenarios of each kind stand; those of one that is built in stand beside its tests."""

EXEMPT = {("shell", "turn.odd-prompt"): "what its prompts hold is meant to be run by a shell"}
"""What is no promise of a kind, and why."""


def conformance(kind: str, scratch: Path) -> Conformance:
    """Return an adapter of a kind, with the program that its scenarios name."""
    return Conformance(
        adapter=shell_agent.ADAPTER if kind == "shell" else ADAPTERS.load(kind),
        scenarios=read_scenarios(FOLDERS[kind], scratch),
        env={"PATH": os.environ["PATH"], "HOME": str(scratch)},
        patience=60.0,
    )


def require_kept(kind: str, check: str, scratch: Path, host: Sshd | None = None) -> None:
    """Fail where a kind does not keep a promise; skip where it cannot be tried, and say why.

    It brings its own event loop: a skip out of a task would lose its reason.
    """
    if (kind, check) in EXEMPT:
        pytest.skip(EXEMPT[kind, check])
    verdict = trio.run(_verdict, conformance(kind, scratch), CHECKS[check], host)
    if verdict.status is Status.NOT_TRIED:
        pytest.skip(verdict.reason)
    assert verdict.status is Status.PASSED, verdict.reason


async def _verdict(
    subject: Conformance, check: ConformanceCheck[Subject], host: Sshd | None
) -> CheckVerdict:
    if host is None:
        return await subject.verdict(check, this_machine())
    async with open_host(host.host, host.settings) as place:
        return await subject.verdict(check, place)
