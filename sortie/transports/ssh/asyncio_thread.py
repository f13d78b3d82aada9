"""One asyncio loop in a thread of its own, and the only ways between it and trio.

Rule 1: what is made on the asyncio thread stays there, but for what says that it serves both.
Rule 2: every ``call`` ends, also where the thread dies under it.
Rule 3: what is still open when the thread ends is closed by it.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any, TypeVar, TypeVarTuple

import outcome
import trio

from sortie.model import TransportError

T = TypeVar("T")
Ts = TypeVarTuple("Ts")

_CLOSERS_BOUND = 4.0  # seconds for the closers together
_THREAD_BOUND = 6.0  # seconds for the thread to end, the closers included

_log = logging.getLogger(__name__)


class AsyncioThreadGone(TransportError):
    """The asyncio thread has ended, or ends; nothing can be asked of it any more."""

    def __init__(self) -> None:
        super().__init__("could not use a remote host: the ssh thread of this process has ended")


@asynccontextmanager
async def open_asyncio_thread() -> AsyncIterator[AsyncioThread]:
    """Run an asyncio thread while the block lasts; leaving it takes a few seconds at most."""
    thread = start_asyncio_thread()
    try:
        yield thread
    finally:
        await thread.aclose()


def start_asyncio_thread() -> AsyncioThread:
    """Start an asyncio thread, which has to be closed."""
    # asyncssh logs commands at INFO and environments at DEBUG.
    logging.getLogger("asyncssh").setLevel(logging.WARNING)
    # asyncio warns of each write to a link that was cut; its errors are more than that.
    logging.getLogger("asyncio").setLevel(logging.ERROR)
    return AsyncioThread(trio.lowlevel.current_trio_token())


class AsyncioThread:
    """The handle on a running asyncio thread; made by the two functions above."""

    def __init__(self, token: trio.lowlevel.TrioToken) -> None:
        self.ended = trio.Event()
        # They run on the asyncio thread, all at the same time, when it ends.
        self.closers: set[Callable[[], Awaitable[object]]] = set()
        self._token = token
        self._loop = asyncio.new_event_loop()
        self._stopped = asyncio.Event()
        self._calls: set[_AsyncioCall] = set()
        threading.Thread(target=self._run, name="sortie-ssh", daemon=True).start()

    def post(self, fn: Callable[[*Ts], object], *args: *Ts) -> bool:
        """Have ``fn(*args)`` called on the asyncio thread, in order; never raises.

        Returns whether the thread was there to take it. Callable from any thread.
        """
        try:
            self._loop.call_soon_threadsafe(fn, *args)
        except RuntimeError:  # the loop is closed
            return False
        return True

    def to_trio(self, fn: Callable[[*Ts], object], *args: *Ts) -> None:
        """Have ``fn(*args)`` called in the trio thread, in order, if trio still runs.

        ``fn`` must not raise. Called on the asyncio thread.
        """
        try:
            self._token.run_sync_soon(fn, *args)
        except trio.RunFinishedError:
            self._stopped.set()

    def later(self, seconds: float, fn: Callable[[], object]) -> asyncio.TimerHandle:
        """Have ``fn()`` called on the asyncio thread after a time. Called on the asyncio thread."""
        return self._loop.call_later(seconds, fn)

    async def call(self, fn: Callable[[*Ts], Awaitable[T]], *args: *Ts) -> T:
        """Run ``await fn(*args)`` on the asyncio thread and return or raise what it does.

        Cancelling the caller cancels the asyncio task and waits for its end. Raises
        AsyncioThreadGone.
        """
        call = _AsyncioCall(trio.lowlevel.current_task())

        def start() -> None:
            call.running = asyncio.ensure_future(fn(*args))
            call.running.add_done_callback(done)

        def done(task: asyncio.Future[T]) -> None:
            self.to_trio(self._finish, call, _outcome_of(task))

        def abort(raise_cancel: Callable[[], Any]) -> trio.lowlevel.Abort:
            call.raise_cancel = raise_cancel
            self.post(lambda: call.running is not None and call.running.cancel())
            return trio.lowlevel.Abort.FAILED

        if self.ended.is_set() or not self.post(start):
            raise AsyncioThreadGone
        self._calls.add(call)
        try:
            result: T = await trio.lowlevel.wait_task_rescheduled(abort)
        except AsyncioThreadGone:
            if call.raise_cancel is not None:
                call.raise_cancel()
            raise
        return result

    async def aclose(self) -> None:
        """End the thread, within a few seconds; one that hangs is left to die with the process."""
        with trio.move_on_after(_THREAD_BOUND, shield=True) as bound:
            self.post(self._stopped.set)
            await self.ended.wait()
        if bound.cancelled_caught:
            _log.error("the ssh thread did not end in %g s and is abandoned", _THREAD_BOUND)
            self._end()

    def _end(self) -> None:
        """End every call whose answer will never come. Called in the trio thread."""
        self.ended.set()
        for call in list(self._calls):
            self._finish(call, outcome.Error(AsyncioThreadGone()))

    def _finish(self, call: _AsyncioCall, result: outcome.Outcome[Any]) -> None:
        if call in self._calls:
            self._calls.discard(call)
            trio.lowlevel.reschedule(call.task, result)

    def _run(self) -> None:
        try:
            # When the runner closes, it cancels the tasks that are left.
            with asyncio.Runner(loop_factory=lambda: self._loop) as runner:
                runner.run(self._main())
        except Exception:
            _log.exception("the ssh thread has crashed")
        finally:
            self.to_trio(self._end)

    async def _main(self) -> None:
        self._loop.set_exception_handler(_log_failure)
        try:
            await self._stopped.wait()
        finally:
            await self._close()

    async def _close(self) -> None:
        try:
            async with asyncio.timeout(_CLOSERS_BOUND):
                results = await asyncio.gather(
                    *(close() for close in self.closers), return_exceptions=True
                )
        except TimeoutError:
            _log.error("the ssh connections did not close in %g s", _CLOSERS_BOUND)
        else:
            for failure in results:
                if isinstance(failure, Exception):
                    _log.error("an ssh connection did not close", exc_info=failure)


class _AsyncioCall:
    """One call that waits for its answer; ``running`` belongs to the asyncio thread."""

    def __init__(self, task: trio.lowlevel.Task) -> None:
        self.task = task
        self.running: asyncio.Future[Any] | None = None
        self.raise_cancel: Callable[[], Any] | None = None


def _outcome_of(task: asyncio.Future[T]) -> outcome.Outcome[T]:
    """Return how a task ended; trio does not know the cancellation of asyncio."""
    if task.cancelled():
        return outcome.Error(AsyncioThreadGone())
    exc = task.exception()
    return outcome.Value(task.result()) if exc is None else outcome.Error(exc)


def _log_failure(_: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """Log an exception that a callback of asyncssh or of ours let escape; the loop goes on."""
    _log.error("in the ssh thread: %s", context.get("message"), exc_info=context.get("exception"))
