"""What all tests share: the switch for the slow ones, how many processes run them, and SIGINT."""

from __future__ import annotations

import os
import signal

import hypothesis
import pytest

MOST = 4

# An example may take any time on a machine that has other things to do.
hypothesis.settings.register_profile("untimed", deadline=None)
hypothesis.settings.load_profile("untimed")


def pytest_configure() -> None:
    """Heed SIGINT, which a shell has its background jobs ignore, and they their children."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int:
    """Take two processes a core, since more than half of the time is waiting, and four at most.

    With more of them deadlines would be missed that a machine with less to do keeps.
    """
    return min(MOST, 2 * (os.cpu_count() or 1))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> object:
    """Let a process that has nothing left to do take tests from another one's queue.

    Else the last minutes of a run are one process's, which drew the slowest tests.
    """
    from xdist.scheduler import WorkStealingScheduling  # type: ignore[import-untyped]

    return WorkStealingScheduling(config, log)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add ``--full``."""
    parser.addoption("--full", action="store_true", help="run the slow tests too")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Skip the slow tests, visibly, unless they were asked for."""
    if config.getoption("--full"):
        return
    skip = pytest.mark.skip(reason="slow: run with --full")
    for item in items:
        if item.get_closest_marker("full") is not None:
            item.add_marker(skip)
