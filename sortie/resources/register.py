"""Which shortages this process is in: each is told when it begins and when it is over.

Rule 1: a shortage is over once the resource was given again on trial, ``QUIET`` seconds after
it was met last.
Rule 2: what is not known because of a shortage is named until it is known.
"""

from __future__ import annotations

import os
from _thread import start_new_thread
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress

import trio

from sortie.resources.shortages import Resource, Shortage, shortage_behind

QUIET = 5.0
"""Seconds without news after which a shortage is taken to be over, if a trial succeeds."""

_FILES_ON_TRIAL = 8
_BYTES_ON_TRIAL = 8 << 20


def _try_files() -> None:
    with ExitStack() as stack:
        for _ in range(_FILES_ON_TRIAL):
            stack.callback(os.close, os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC))


def _try_processes() -> None:
    # Not threading.Thread: its start waits for ever for a thread that memory ran out for.
    start_new_thread(_do_nothing, ())


def _do_nothing() -> None:
    pass


def _try_memory() -> None:
    bytearray(_BYTES_ON_TRIAL)


TRIALS: Mapping[Resource, Callable[[], None]] = {
    Resource.FILES: _try_files,
    Resource.PROCESSES: _try_processes,
    Resource.MEMORY: _try_memory,
}
"""Take a little of a resource and give it back; raise where it is short."""


class Shortages:
    """The account of one process; ``begun`` and ``ended`` are told of each shortage."""

    def __init__(
        self,
        begun: Callable[[Shortage], object] = lambda _: None,
        ended: Callable[[Shortage], object] = lambda _: None,
        trials: Mapping[Resource, Callable[[], None]] = TRIALS,
    ) -> None:
        self._begun = begun
        self._ended = ended
        self._trials = trials
        self._met: dict[Resource, tuple[Shortage, float]] = {}
        self._unknown: list[str] = []
        self._news = trio.Event()

    @property
    def shortages(self) -> tuple[str, ...]:
        """What this process is short of now, a sentence each."""
        return tuple(str(shortage) for shortage, _ in self._met.values())

    @property
    def unknown(self) -> tuple[str, ...]:
        """What cannot be told now, a sentence each."""
        return tuple(dict.fromkeys(self._unknown))

    def meet(self, shortage: Shortage) -> None:
        """Note that a resource was refused just now."""
        is_news = shortage.resource not in self._met
        self._met[shortage.resource] = (shortage, trio.current_time())
        if is_news:
            self._begun(shortage)
            self._news.set()

    @contextmanager
    def not_known(self, sentence: str) -> Iterator[None]:
        """Name something as unknown while the block lasts."""
        self._unknown.append(sentence)
        try:
            yield
        finally:
            self._unknown.remove(sentence)

    async def watch(self) -> None:
        """See shortages end, until cancelled."""
        while True:
            if not self._met:
                self._news = trio.Event()
                await self._news.wait()
            await trio.sleep(1.0)
            for resource, (shortage, at) in tuple(self._met.items()):
                if trio.current_time() - at >= QUIET and self._is_given(resource):
                    del self._met[resource]
                    self._ended(shortage)

    def _is_given(self, resource: Resource) -> bool:
        try:
            self._trials[resource]()
        except (OSError, RuntimeError, MemoryError) as exc:
            shortage = shortage_behind(exc)
            if shortage is not None:
                self.meet(shortage)
            return False
        return True


_account: trio.lowlevel.RunVar[Shortages] = trio.lowlevel.RunVar("shortages of this process")


def keep_account(shortages: Shortages) -> None:
    """Have everything that this run of trio meets taken down there."""
    _account.set(shortages)


def note(shortage: Shortage) -> None:
    """Note a shortage, where an account is kept."""
    with suppress(LookupError):
        _account.get().meet(shortage)


@contextmanager
def not_known(sentence: str) -> Iterator[None]:
    """Name something as unknown while the block lasts, where an account is kept."""
    try:
        account = _account.get()
    except LookupError:
        yield
        return
    with account.not_known(sentence):
        yield
