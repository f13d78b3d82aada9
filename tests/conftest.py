"""What all tests share: the switch for the slow ones, how many processes run them, and SIGINT."""

from __future__ import annotations

import gc
import os
import signal
import ssl
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import httpcore2
import hypothesis
import pytest
from _pytest.terminal import TerminalReporter

from sortie.workflow import loader
from tests.properties import set_full
from tests.skipped import FULL, lines_about

if TYPE_CHECKING:
    from tests.kubernetes_api.api_server import ApiServer
    from tests.store.postgres_server import PostgresServer

MOST = 4

# An example may take any time on a machine that has other things to do, and so may making it.
hypothesis.settings.register_profile(
    "untimed", deadline=None, suppress_health_check=[hypothesis.HealthCheck.too_slow]
)
hypothesis.settings.register_profile(
    "short", hypothesis.settings.get_profile("untimed"), max_examples=50
)


def pytest_configure(config: pytest.Config) -> None:
    """Heed SIGINT, which a shell has its background jobs ignore, and they their children.

    Without ``--full`` properties are held by half as many examples.
    """
    full = config.getoption("--full")
    set_full(full)
    hypothesis.settings.load_profile("untimed" if full else "short")
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


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Search no garbage while tests are collected, which are many objects that all stay."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Skip the slow tests, visibly, unless they were asked for."""
    if config.getoption("--full"):
        return
    skip = pytest.mark.skip(reason=FULL)
    for item in items:
        if item.get_closest_marker("full") is not None:
            item.add_marker(skip)


@pytest.fixture(scope="session", autouse=True)
def _no_work_tree_around(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Have no git work tree count in which the tests' temporary directory lies.

    ``sortie validate`` warns of workspaces in a work tree, and tests compare all that it says.
    """
    base = Path(os.path.realpath(tmp_path_factory.getbasetemp()))
    around, has_git = {base, *base.parents}, loader._has_git
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(loader, "_has_git", lambda place: place not in around and has_git(place))
        yield


@pytest.fixture(scope="session", autouse=True)
def _certificates_are_read_once() -> Iterator[None]:
    """Have HTTP clients share what they trust: each of a thousand clients would read it again,
    which takes longer than most of their tests."""
    read, kept = httpcore2.default_ssl_context, dict[object, ssl.SSLContext]()

    def trusted(*, _trust_env: bool = True) -> ssl.SSLContext:
        named = tuple(os.environ.get(f"SSL_CERT_{kind}") for kind in ("FILE", "DIR"))
        if (_trust_env, named) not in kept:
            kept[_trust_env, named] = read(_trust_env=_trust_env)
        return kept[_trust_env, named]

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(httpcore2, "default_ssl_context", trusted)
        yield


@pytest.fixture(scope="session")
def api_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiServer]:
    """Give a real API server of Kubernetes, whose tests have a namespace each."""
    from tests.kubernetes_api.api_server import api_server_running

    with api_server_running(tmp_path_factory.mktemp("kubernetes")) as server:
        yield server


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[PostgresServer]:
    """Give a PostgreSQL server that no test ends; each test has a schema of its own there."""
    from tests.store.postgres_server import postgres_running

    with postgres_running() as server:
        yield server


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_terminal_summary(terminalreporter: TerminalReporter) -> Generator[None]:
    """Say at the end, in three lines, what was skipped and what it would take to try it."""
    yield
    skipped = terminalreporter.stats.get("skipped", ())
    reasons = [report.longrepr[2].removeprefix("Skipped: ") for report in skipped]
    for line in lines_about(reasons):
        terminalreporter.write_line(line)
