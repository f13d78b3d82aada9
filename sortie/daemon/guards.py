"""The daemon's clock, watchdog and record of shortages, and the failures that may end it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import trio
from msgspec import Struct

from sortie.daemon.stop_deadline import StopDeadline
from sortie.model import SortieError
from sortie.resources import Shortage, Shortages, keep_account, shortage_behind
from sortie.resources.clock import PauseClock
from sortie.resources.descriptors import keep_reserve
from sortie.resources.garbage import search_as_daemon
from sortie.resources.watchdog import Watchdog
from sortie.telemetry import Publish, facts

STARTED_AFTER = 2.0
"""Seconds after which a daemon has loaded what it needs."""


class Guards(Struct, frozen=True):
    """The clock that notices pauses of the daemon, the watchdog that ends one that hangs, and the
    deadline of its end."""

    clock: PauseClock
    watchdog: Watchdog
    deadline: StopDeadline

    def start(
        self,
        services: trio.Nursery,
        shortages: Shortages,
        publish: Publish,
        is_idle: Callable[[], bool],
    ) -> None:
        """Notice pauses and shortages, and the end of the start, while the nursery lasts."""
        keep_account(shortages)
        keep_reserve()
        services.start_soon(shortages.watch)
        services.start_soon(
            self.clock.tick,
            lambda seconds: publish(facts.DaemonWasPaused(seconds=seconds)),
            is_idle,
        )
        services.start_soon(_end_the_start)


async def _end_the_start() -> None:
    await trio.sleep(STARTED_AFTER)
    search_as_daemon()


def published_shortages(publish: Publish) -> Shortages:
    """Return an account that publishes the beginning and the end of each shortage."""

    def ended(shortage: Shortage) -> None:
        keep_reserve()
        publish(facts.ShortageEnded(resource=shortage.resource))

    return Shortages(
        begun=lambda s: publish(facts.ShortageBegan(resource=s.resource, error=str(s))),
        ended=ended,
    )


@contextmanager
def expected_failures() -> Iterator[None]:
    """Raise the SortieError, or the shortage, that ended the daemon, if that was all."""
    try:
        yield
    except ExceptionGroup as group:
        expected, other = group.split(_is_expected)
        if expected is None or other is not None:
            raise
        error = _first(expected)
        raise _as_expected(error) from group
    except (OSError, RuntimeError, MemoryError) as error:
        if not _is_expected(error):
            raise
        raise _as_expected(error) from error


def _is_expected(error: Exception) -> bool:
    return isinstance(error, SortieError) or shortage_behind(error) is not None


def _as_expected(error: Exception) -> Exception:
    return error if isinstance(error, SortieError) else shortage_behind(error) or error


def _first(group: ExceptionGroup[Exception]) -> Exception:
    """Return the first failure of a group."""
    error = group.exceptions[0]
    return _first(error) if isinstance(error, ExceptionGroup) else error
