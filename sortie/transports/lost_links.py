"""Which runs have a program on a host to which there is no link now, and who is told of that."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Protocol, runtime_checkable

from msgspec import Struct, field

from sortie.model import HostError, RunId

LinkChanged = Callable[[bool], object]
"""Called with whether the link to a program of a run is lost now."""


@runtime_checkable
class OutlivesLinks(Protocol):
    """A transport whose programs may go on while there is no link to their host."""

    def following_links(self, run_id: RunId, changed: LinkChanged) -> AbstractContextManager[None]:
        """Have ``changed`` called while the block lasts: with True as soon as the link to a program
        of the run is lost, or at once where it is, and with False when each has its link again or
        is over."""
        ...


HEARING = 30.0
"""Seconds in which a program that has its link again is waited for at least: what it has said, or
that it has ended, is heard, however late it is."""


def following_links(
    transport: object, run_id: RunId, changed: LinkChanged
) -> AbstractContextManager[None]:
    """Tell of a run's links where programs of the transport outlive them; see OutlivesLinks."""
    if isinstance(transport, OutlivesLinks):
        return transport.following_links(run_id, changed)
    return nullcontext()


class LostLinks:
    """The programs that are without a link now, by their runs."""

    def __init__(self) -> None:
        self._programs: dict[str, set[object]] = {}
        self._followers: dict[str, list[LinkChanged]] = {}

    def add(self, run_id: str, program: object) -> None:
        """Note that a program has lost its link."""
        lost = self._programs.setdefault(run_id, set())
        lost.add(program)
        if len(lost) == 1:
            self._tell(run_id, lost=True)

    def discard(self, run_id: str, program: object) -> None:
        """Note that a program has its link again, or is over."""
        lost = self._programs.get(run_id, set())
        if program in lost:
            lost.remove(program)
            if not lost:
                del self._programs[run_id]
                self._tell(run_id, lost=False)

    @contextmanager
    def followed(self, run_id: str, changed: LinkChanged) -> Iterator[None]:
        """Tell of the links of a run while the block lasts; see OutlivesLinks."""
        followers = self._followers.setdefault(run_id, [])
        followers.append(changed)
        try:
            if run_id in self._programs:
                changed(True)
            yield
        finally:
            followers.remove(changed)
            if not followers:
                del self._followers[run_id]

    def _tell(self, run_id: str, *, lost: bool) -> None:
        for changed in tuple(self._followers.get(run_id, ())):
            changed(lost)


class Links(Struct, frozen=True, kw_only=True):
    """What is called, with the program's run, when its link is lost, and when it is there again
    after so many seconds; ``new_nonce`` gives a text that was never used before. ``lost_now`` are
    the programs that wait for a link."""

    new_nonce: Callable[[], str]
    lost: Callable[[str, HostError], object] = lambda _run, _error: None
    restored: Callable[[str, float], object] = lambda _run, _seconds: None
    lost_now: LostLinks = field(default_factory=LostLinks)
