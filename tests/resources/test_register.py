"""A shortage is told when it begins and when it is over, each time once."""

from __future__ import annotations

import errno

import pytest
import trio
import trio.testing

from sortie.resources import Resource, Shortage, Shortages
from sortie.resources.register import QUIET, TRIALS
from tests.resources.scarcity import descriptors_left, no_threads

FILES = Shortage(Resource.FILES, "no more files")


class Machine:
    """Gives files or does not."""

    def __init__(self) -> None:
        self.gives = False

    def take(self) -> None:
        if not self.gives:
            raise OSError(errno.EMFILE, "Too many open files")


async def test_a_shortage_ends_by_itself(autojump_clock: trio.testing.MockClock) -> None:
    """It stands while the resource is refused on trial, and no longer."""
    machine = Machine()
    told: list[tuple[str, float]] = []
    account = Shortages(
        begun=lambda _: told.append(("begun", trio.current_time())),
        ended=lambda _: told.append(("ended", trio.current_time())),
        trials={Resource.FILES: machine.take},
    )

    async with trio.open_nursery() as nursery:
        nursery.start_soon(account.watch)
        for _ in range(3):
            account.meet(FILES)
        await trio.sleep(60)
        still = account.shortages
        machine.gives = True
        await trio.sleep(QUIET + 1.5)
        nursery.cancel_scope.cancel()

    assert len(still) == 1
    assert account.shortages == ()
    assert [word for word, _ in told] == ["begun", "ended"]
    assert told[1][1] >= 60


async def test_what_is_unknown_is_named_until_it_is_known() -> None:
    """Two who do not know the same thing are one sentence, until both know."""
    account = Shortages()

    with account.not_known("a"):
        with account.not_known("a"):
            both = account.unknown
        one = account.unknown

    assert both == one == ("a",)
    assert account.unknown == ()


def test_the_trial_of_files_is_in_earnest() -> None:
    """It fails where descriptors are scarce, and takes none for good."""
    with descriptors_left(4), pytest.raises(OSError, match="Too many open files"):
        TRIALS[Resource.FILES]()
    with descriptors_left(20):
        TRIALS[Resource.FILES]()
        TRIALS[Resource.FILES]()
        TRIALS[Resource.FILES]()


def test_the_trial_of_processes_is_in_earnest(monkeypatch: pytest.MonkeyPatch) -> None:
    """It fails where there is no thread to be had."""
    with no_threads(monkeypatch), pytest.raises(RuntimeError):
        TRIALS[Resource.PROCESSES]()
    TRIALS[Resource.PROCESSES]()
