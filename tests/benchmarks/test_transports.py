"""A small measurement of remote turns: that the ways can be compared, and that ours stays cheap."""

from __future__ import annotations

import sys

import pytest

from tests.benchmarks.rounds import Measured, Plan
from tests.benchmarks.transports import run
from tests.transports.ssh.sshd import requires_sshd

pytestmark = [
    requires_sshd,
    pytest.mark.full,
    pytest.mark.skipif(sys.platform != "linux", reason="CPU clocks of others are Linux's"),
]


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> list[Measured]:
    """Measure each way a few times."""
    return run(tmp_path_factory.mktemp("benchmark"), Plan(rounds=8, batch=5))


def ratio(measured: list[Measured], other: str, way: str = "turn") -> float:
    """Return how many times the processor time of one way another takes, one at a time."""
    costs = {found.way: found.cost.all for found in measured if found.at_once == 1}
    return costs[other] / costs[way]


def test_a_turn_costs_a_fraction_of_a_connection(measured: list[Measured]) -> None:
    """The daemon's side of a whole turn, with its watchdog and its certain end, is a small part
    of what ``ssh`` takes to run the bare program, and less than ``ssh`` over a master takes.

    The aim is 20 and 2; so few commands on a machine that others use may fall a little short.
    """
    assert ratio(measured, "ssh") > 17
    assert ratio(measured, "ssh-master") > 1.7


def test_a_bare_command_costs_a_fraction_of_a_turn(measured: list[Measured]) -> None:
    """A command over a kept connection, as ``ssh`` would run it, is far below both."""
    assert ratio(measured, "ssh", "channel") > 20
    assert ratio(measured, "ssh-master", "channel") > 2


def test_nothing_is_started_here_for_a_remote_turn(measured: list[Measured]) -> None:
    """Neither a turn nor a command has a child on this machine; each ``ssh`` is one."""
    children = {found.way: found.cost.children for found in measured}

    assert (children["turn"], children["channel"]) == (0, 0)
    assert min(children["ssh"], children["ssh-master"]) > 0
