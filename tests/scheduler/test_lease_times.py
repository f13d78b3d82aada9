"""The order of what happens to a lease that is not renewed, and to one that is not preferred."""

from __future__ import annotations

import math

import pytest

from sortie.scheduler.lease_times import (
    acquire_in,
    cancel_at,
    kill_at,
    must_hand_over,
    pause_of_standby,
    preference,
    renew_at,
)


def test_a_lease_of_fifteen_seconds() -> None:
    """Renewed at 5 s, its life cancelled at 10 s, the process killed at 13 s."""
    steps = [step(100.0, 15.0) for step in (renew_at, cancel_at, kill_at)]

    assert steps == [105.0, 110.0, 113.0]


@pytest.mark.parametrize("lease", [0.3, 1.0, 3.0, 6.0, 12.0, 15.0, 60.0, 3600.0])
def test_the_steps_come_in_order(lease: float) -> None:
    """However short a lease is, each step leaves time before the next one."""
    steps = [step(7.0, lease) for step in (renew_at, cancel_at, kill_at)]

    assert steps == sorted(set(steps))
    assert 7.0 + lease - kill_at(7.0, lease) >= min(2.0, lease / 6.01)


def test_a_clock_of_the_server_that_jumps_ends_no_lease() -> None:
    """One that was renewed a moment ago, as seen from here, is not over; one given back is."""

    def after(left: float, unchanged: float, *, is_led: bool, wait: float = 0.0) -> float:
        return acquire_in(left=left, unchanged=unchanged, lease=15.0, is_led=is_led, wait=wait)

    assert after(1.0, 60.0, is_led=True) == 1.0
    assert after(-3600.0, 4.0, is_led=True) == 11.0
    assert after(0.0, 15.0, is_led=True) == 0.0
    assert after(0.0, 0.0, is_led=False) == 0.0
    assert after(-0.5, 16.0, is_led=True, wait=1.0) == 0.5


def test_a_free_lease_is_left_to_the_preferred_candidate_for_a_second() -> None:
    """The others wait; none waits where none is preferred."""
    assert preference("a", "a") == 0.0
    assert preference("a", "b") == 1.0
    assert preference("a", None) == 0.0


def test_a_standby_looks_each_second_and_when_a_lease_is_over() -> None:
    """It looks no later than it may acquire the lease, and not without a pause."""
    assert pause_of_standby(math.inf) == 1.0
    assert pause_of_standby(7.0) == 1.0
    assert pause_of_standby(0.4) == 0.4
    assert pause_of_standby(1e-9) == 0.01


def test_a_leader_goes_on_unless_it_drains_or_another_is_preferred() -> None:
    """A drain counts first; without another candidate a leader that does not drain leads on."""
    assert must_hand_over("a", "a", draining=False) is None
    assert must_hand_over("a", None, draining=False) is None
    assert must_hand_over("a", "b", draining=False) == "moved"
    assert must_hand_over("a", "b", draining=True) == "drained"
    assert must_hand_over("a", None, draining=True) == "drained"
