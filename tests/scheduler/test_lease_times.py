"""The order of what happens to a lease that is not renewed, and to one that is not preferred."""

from __future__ import annotations

import pytest

from sortie.scheduler.lease_times import (
    acquire_at,
    cancel_at,
    kill_at,
    may_acquire,
    must_hand_over,
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
    assert not may_acquire(left=1.0, unchanged=60.0, lease=15.0, is_led=True)
    assert not may_acquire(left=-3600.0, unchanged=4.0, lease=15.0, is_led=True)
    assert may_acquire(left=0.0, unchanged=15.0, lease=15.0, is_led=True)
    assert may_acquire(left=0.0, unchanged=0.0, lease=15.0, is_led=False)


def test_a_free_lease_is_left_to_the_preferred_candidate_for_a_second() -> None:
    """The others wait; none waits where none is preferred."""
    assert acquire_at(50.0, "a", "a") == 50.0
    assert acquire_at(50.0, "a", "b") == 51.0
    assert acquire_at(50.0, "a", None) == 50.0


def test_a_leader_goes_on_unless_it_drains_or_another_is_preferred() -> None:
    """A drain counts first; without another candidate a leader that does not drain leads on."""
    assert must_hand_over("a", "a", draining=False) is None
    assert must_hand_over("a", None, draining=False) is None
    assert must_hand_over("a", "b", draining=False) == "moved"
    assert must_hand_over("a", "b", draining=True) == "drained"
    assert must_hand_over("a", None, draining=True) == "drained"
