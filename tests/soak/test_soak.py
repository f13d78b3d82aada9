"""That growth is told from noise, and with --full that the load is full and nothing grows."""

from __future__ import annotations

import sys

import pytest

from tests.soak import real, simulated
from tests.soak.__main__ import judge
from tests.soak.flatness import Look, Quantity, courses

LOOKS = 8
MEMORY = Quantity(name="memory", unit="bytes", share=0.05, slack=10.0)

linux = pytest.mark.skipif(sys.platform != "linux", reason="what is looked at is in /proc")


def looks(values: list[float]) -> list[Look]:
    return [{"memory": value} for value in values]


def test_what_fills_up_first_and_then_stays_is_flat() -> None:
    """The first quarter is left out, and a peak is no growth."""
    (course,) = courses([MEMORY], looks([10, 90, 100, 100, 180, 100, 104, 100]))

    assert course.is_flat
    assert (course.second, course.last, course.most) == (100, 102, 180)


def test_what_goes_on_growing_is_not_flat() -> None:
    """A steady rise between the second quarter and the last is growth; the exit code says so."""
    rising = looks([100 + 10 * number for number in range(16)])

    (course,) = courses([MEMORY], rising)

    assert not course.is_flat
    assert judge([MEMORY], rising, []) == 1


def test_a_broken_promise_is_told_before_anything_else(capsys: pytest.CaptureFixture[str]) -> None:
    """Where a promise was broken there are no verdicts, which need all looks."""
    assert judge([MEMORY], [], ["two runs at once"]) == 1
    assert capsys.readouterr().out == "broken: two runs at once\n"


@linux
@pytest.mark.full
def test_the_simulated_load_is_full() -> None:
    """Nearly every slot is taken at each look, runs go on, and no promise is broken."""
    soak = simulated.Soak(1, 0.03, lambda _look: None, LOOKS)

    soak.live()

    assert soak.wrongs == []
    assert len(soak.looks) == LOOKS
    assert min(look["working"] for look in soak.looks) >= simulated.SLOTS - 4
    assert soak.looks[-1]["runs"] > simulated.SLOTS
    assert len(courses(simulated.QUANTITIES, soak.looks)) == len(simulated.QUANTITIES)


@linux
@pytest.mark.full
def test_the_real_load_goes_on() -> None:
    """A daemon runs issues that come and go, and all runs end well."""
    soak = real.Soak(0.5, lambda _look: None, LOOKS)

    soak.live()

    assert len(soak.looks) == LOOKS
    assert soak.runs > real.SLOTS
    assert len(courses(real.QUANTITIES, soak.looks)) == len(real.QUANTITIES)


@linux
@pytest.mark.full
@pytest.mark.timeout(1200)
def test_nothing_grows_in_a_simulated_hour() -> None:
    """Memory, descriptors and the write-ahead log stay flat."""
    soak = simulated.Soak(2, 1.0, lambda _look: None)

    soak.live()

    assert soak.wrongs == []
    grown = [str(c) for c in courses(simulated.QUANTITIES, soak.looks) if not c.is_flat]
    assert grown == []


@linux
@pytest.mark.full
@pytest.mark.timeout(600)
def test_nothing_grows_in_real_minutes() -> None:
    """Memory, descriptors, threads and the write-ahead log of a real daemon stay flat."""
    soak = real.Soak(3.0, lambda _look: None)

    soak.live()

    grown = [str(c) for c in courses(real.QUANTITIES, soak.looks) if not c.is_flat]
    assert grown == []
