"""Runs a hook: a shell script with a time limit, none of whose processes outlives it."""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Mapping
from enum import StrEnum

import trio
from msgspec import Struct

from sortie.model import HostError, RunId, TransportError
from sortie.model.numbers import seconds_text
from sortie.model.texts import end_of
from sortie.resources import shortage_behind
from sortie.transports import COOKIE, Command, Exit, Transport
from sortie.transports.exit_shortage import exit_shortage
from sortie.transports.lost_links import HEARING, following_links

HOOK_OUTPUT_LIMIT = 4096
"""Bytes of a hook's output that are kept: the last ones, where the error stands."""

_SHELL = "/bin/sh"


class HookOutcome(StrEnum):
    """How a hook ended."""

    OK = "ok"
    FAILED = "failed"
    TIMEOUT = "timeout"


class HookResult(Struct, frozen=True, kw_only=True):
    """How a hook ended, after how many seconds.

    ``status`` says it in words ("exit 1", "signal 9"). ``output`` is the end of stdout and
    stderr, with control characters escaped; or the reason why the hook could not be run.
    ``trouble`` is set where that is no fault of the hook: its host, or a shortage on this machine.
    """

    result: HookOutcome
    seconds: float
    status: str
    output: str
    trouble: TransportError | None = None


async def run_hook(
    transport: Transport,
    script: str,
    *,
    cwd: str,
    env: Mapping[str, str],
    timeout: float,
    grace: float = 5.0,
) -> HookResult:
    """Run ``sh -c script`` and return how it ended; a failure is a result, not an error.

    When the time is over, and when the script leaves processes behind, its tree is ended with
    ``grace`` seconds between SIGTERM and SIGKILL, which come on top of ``timeout``. While its host
    cannot be reached it is not ended for its time; see _Limit.
    """
    began = trio.current_time()
    tail, limit, run_id = _Tail(), _Limit(), RunId(env.get(COOKIE, ""))
    exit_: Exit | None = None
    command = Command(argv=(_SHELL, "-c", script), cwd=cwd, env=env, grace=grace)
    try:
        with following_links(transport, run_id, limit.link_changed), limit.scope:
            async with transport.process(command) as process:
                # Waiting for a host that has no time for another login is not the hook's.
                limit.begin(timeout)
                async for _, chunk in process.output():
                    tail.add(chunk)
                exit_ = await process.wait()
    except TransportError as exc:
        seconds = trio.current_time() - began
        return HookResult(
            result=HookOutcome.FAILED,
            seconds=seconds,
            status="not run",
            output=str(exc),
            trouble=exc if isinstance(exc, HostError) or shortage_behind(exc) else None,
        )
    seconds = trio.current_time() - began
    if exit_ is None:
        status = f"ended after its limit of {seconds_text(timeout)}"
        return HookResult(
            result=HookOutcome.TIMEOUT, seconds=seconds, status=status, output=tail.text()
        )
    if exit_.status == 0:
        return HookResult(
            result=HookOutcome.OK, seconds=seconds, status=_words(exit_), output=tail.text()
        )
    return HookResult(
        result=HookOutcome.FAILED,
        seconds=seconds,
        status=_words(exit_),
        output=tail.text(),
        trouble=exit_shortage("a program of the hook", transport.host, exit_, tail.text()),
    )


def _words(exit_: Exit) -> str:
    if exit_.status is not None:
        return f"exit {exit_.status}"
    return "lost" if exit_.signal is None else f"signal {exit_.signal}"


class _Limit:
    """Cancels ``scope`` when a hook takes too long.

    The time that it takes is counted without a link to its host, too, but ends nothing then: the
    hook may have ended in time, and only a new link tells so. With that it has HEARING seconds, or
    its limit, at least. The wait for the link ends the hook where there is none again.
    """

    def __init__(self) -> None:
        self.scope = trio.CancelScope()
        self._limit = self._ends_at = math.inf
        self._is_lost = False

    def begin(self, limit: float) -> None:
        """Begin to count these seconds."""
        self._limit, self._ends_at = limit, trio.current_time() + limit
        if not self._is_lost:
            self.scope.deadline = self._ends_at

    def link_changed(self, lost: bool) -> None:
        """End nothing while the link is lost."""
        now = trio.current_time()
        if now >= self.scope.deadline:
            return  # it is being ended
        self._is_lost = lost
        heard_at = now + min(HEARING, self._limit)
        self.scope.deadline = math.inf if lost else max(self._ends_at, heard_at)


class _Tail:
    """The last HOOK_OUTPUT_LIMIT bytes of what was added, cut once it is whole."""

    def __init__(self) -> None:
        self._kept = b""

    def add(self, chunk: bytes) -> None:
        self._kept = (self._kept + chunk)[-2 * HOOK_OUTPUT_LIMIT :]

    def text(self) -> str:
        """Return what is kept as harmless text of no more bytes, without half a word in front: it
        may be a secret, which is not known by its half."""
        text = "".join(_harmless(c) for c in self._kept.decode("utf-8", "replace"))
        while (extra := len(text.encode("utf-8")) - HOOK_OUTPUT_LIMIT) > 0:
            text = end_of(text, max(len(text) - extra, 0))
        return text


def _harmless(character: str) -> str:
    if character in "\n\t" or unicodedata.category(character)[0] != "C":
        return character
    return character.encode("unicode_escape").decode("ascii")
