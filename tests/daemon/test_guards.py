"""How the daemon ends by what was to be expected, and by what was not."""

from __future__ import annotations

import os

import pytest
import trio
import trio.testing

from sortie.daemon.guards import expected_failures, published_shortages
from sortie.facts import Fact
from sortie.model import SortieError
from sortie.resources import Resource, Shortage
from sortie.resources.descriptors import released_reserve
from sortie.telemetry import facts
from tests.resources.scarcity import descriptors_left, own_reserve

NO_THREAD = RuntimeError("can't start new thread")
BUG = RuntimeError("dictionary changed size")
REFUSED = SortieError("the port is taken")


@pytest.mark.parametrize("error", [NO_THREAD, MemoryError(), OSError(24, "Too many open files")])
def test_a_shortage_is_told_in_a_line(error: Exception) -> None:
    """Alone or in the groups that nurseries make of it."""
    for raised in (error, ExceptionGroup("g", [ExceptionGroup("g", [error])])):
        with pytest.raises(Shortage, match="a shortage of"), expected_failures():
            raise raised


@pytest.mark.parametrize(
    "error", [BUG, ExceptionGroup("g", [BUG]), ExceptionGroup("g", [REFUSED, BUG])], ids=repr
)
def test_a_bug_leaves_as_it_is(error: Exception) -> None:
    """With its traceback, whatever else went wrong beside it."""
    with pytest.raises(type(error)) as caught, expected_failures():
        raise error

    assert caught.value is error


async def test_the_reserve_is_held_again_when_a_shortage_is_over(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """Others may have taken it; the next shortage finds it whole."""
    told: list[Fact] = []
    shortages = published_shortages(told.append)
    nursery.start_soon(shortages.watch)

    with own_reserve():
        with descriptors_left(0), released_reserve():
            pass
        shortages.meet(Shortage(Resource.FILES, "no more files"))
        await trio.sleep(10)
        with descriptors_left(1):
            held = os.open(os.devnull, os.O_RDONLY)
            with released_reserve():
                os.close(os.open(os.devnull, os.O_RDONLY))
            os.close(held)

    assert [type(fact) for fact in told] == [facts.ShortageBegan, facts.ShortageEnded]
