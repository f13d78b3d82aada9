"""One asyncio loop in a thread of its own, and the only ways between it and trio.

Rule 1: what is made on the asyncio thread stays there; trio code holds handles.
Rule 2: every ``call`` ends, also where the thread dies under it.
Rule 3: what is still open when the thread ends is closed by it, at the latest a few seconds
after the trio run is over, even where the trio run could not say so any more.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any, TypeVar, TypeVarTuple

import outcome
import trio

from sortie.model import TransportError

T = TypeVar("T")
Ts = TypeVarTuple("Ts")
_Result = outcome.Outcome[Any]

_CLOSE_BOUND = 4.0  # for what is open to be closed
_STOP_BOUND = 6.0  # for the thread to end, that included
_LOOK = 5.0  # between two looks at whether the trio run is still there

_log = logging.getLogger(__name__)


class AsyncioThreadGone(TransportError):
    """The asyncio thread has ended, or ends; nothing can be asked of it any more."""

    def __init__(self) -> None:
        super().__init__("could not use a remote host: the ssh thread of this process has ended")


@asynccontextmanager
async def open_asyncio_thread() -> AsyncIterator[AsyncioThread]:
    """Run an asyncio thread while the block lasts.

    Leaving takes a few seconds at most; a thread that hangs is left to die with the process.
    """
    thread = start_asyncio_thread()
    try:
        with trio.CancelScope(shield=True):
            await thread.begun.wait()
        yield thread
    finally:
        await thread.aclose()


def start_asyncio_thread() -> AsyncioThread:
    """Start an asyncio thread, which is to be closed; calls wait until it has begun."""
    # asyncssh tells commands at INFO and environments at DEBUG.
    logging.getLogger("asyncssh").setLevel(logging.WARNING)
    return AsyncioThread(trio.lowlevel.current_trio_token())


class AsyncioThread:
    """The handle on a running asyncio thread; made by the two functions above."""

    def __init__(self, token: trio.lowlevel.TrioToken) -> None:
        self.begun = trio.Event()
        self.ended = trio.Event()
        # Run on the asyncio thread, at the same time, when it ends: they close what is open.
        self.closers: set[Callable[[], Awaitable[object]]] = set()
        self._token = token
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stop: asyncio.Event | None = None
        self._calls: set[_Call] = set()
        threading.Thread(target=self._run, name="sortie-ssh", daemon=True).start()

    def post(self, fn: Callable[[*Ts], object], *args: *Ts) -> bool:
        """Have ``fn(*args)`` called on the asyncio thread, in order; never raises.

        Returns whether the thread was there to take it. Callable from any thread.
        """
        if self._loop is None:
            return False
        try:
            self._loop.call_soon_threadsafe(fn, *args)
        except RuntimeError:  # the loop is closed
            return False
        return True

    def to_trio(self, fn: Callable[[*Ts], object], *args: *Ts) -> bool:
        """Have ``fn(*args)`` called in the trio thread, in order; return whether trio still runs.

        ``fn`` must not raise. Called on the asyncio thread.
        """
        try:
            self._token.run_sync_soon(fn, *args)
        except trio.RunFinishedError:
            self.stop()
            return False
        return True

    def stop(self) -> None:
        """Begin to end the thread. Called on the asyncio thread."""
        if self._stop is not None:
            self._stop.set()

    async def call(
        self,
        fn: Callable[[*Ts], Coroutine[Any, Any, T]],
        *args: *Ts,
        late: Callable[[outcome.Outcome[T]], object] | None = None,
        leave: Callable[[], bool] | None = None,
    ) -> T:
        """Run ``await fn(*args)`` on the asyncio thread and return or raise what it does.

        Where the caller is cancelled: without ``late``, the asyncio task is cancelled and waited
        for; with it, the call is left at once, the task goes on, and ``late`` is given its
        outcome in the trio thread. Where ``leave`` then says no, the call is not left: it ends
        with the task, and as that does. Raises AsyncioThreadGone.
        """
        call = _Call(task=trio.lowlevel.current_task(), late=late)

        def start() -> None:
            assert self._loop is not None
            call.running = self._loop.create_task(fn(*args))
            call.running.add_done_callback(done)

        def done(task: asyncio.Task[T]) -> None:
            self.to_trio(self._finish, call, _outcome_of(task))

        def abort(raise_cancel: Callable[[], Any]) -> trio.lowlevel.Abort:
            call.raise_cancel = raise_cancel
            if late is not None:
                call.abandoned = leave is None or leave()
                aborts = trio.lowlevel.Abort
                return aborts.SUCCEEDED if call.abandoned else aborts.FAILED
            # A thread that is gone ends the call by ``forsake``.
            self.post(lambda: call.running is not None and call.running.cancel())
            return trio.lowlevel.Abort.FAILED

        if not self.begun.is_set():
            await self.begun.wait()
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
        with trio.move_on_after(_STOP_BOUND, shield=True) as bound:
            await self.begun.wait()
            self.post(self.stop)
            await self.ended.wait()
        if bound.cancelled_caught:
            _log.error("the ssh thread did not end in %g s and is abandoned", _STOP_BOUND)
        self.forsake()

    def forsake(self) -> None:
        """End every call whose answer will never come. Called in the trio thread."""
        self.ended.set()
        for call in list(self._calls):
            self._finish(call, outcome.Error(AsyncioThreadGone()))

    def _finish(self, call: _Call, result: _Result) -> None:
        if call not in self._calls:
            return  # forsaken before
        self._calls.discard(call)
        if not call.abandoned:
            trio.lowlevel.reschedule(call.task, result)
        elif call.late is not None:
            call.late(result)

    def _run(self) -> None:
        try:
            with asyncio.Runner() as runner:  # cancels the tasks that are left, when it closes
                runner.run(self._main())
        except Exception:
            _log.exception("the ssh thread has crashed")
        finally:
            self.to_trio(self.begun.set)
            self.to_trio(self.forsake)

    async def _main(self) -> None:
        self._stop = asyncio.Event()
        self._loop = asyncio.get_running_loop()
        self._loop.set_exception_handler(_note)
        self.to_trio(self.begun.set)
        try:
            while not self._stop.is_set():
                try:
                    async with asyncio.timeout(_LOOK):
                        await self._stop.wait()
                except TimeoutError:
                    self.to_trio(_nothing)  # stops us where trio is gone
        finally:
            await self._close()

    async def _close(self) -> None:
        try:
            async with asyncio.timeout(_CLOSE_BOUND):
                results = await asyncio.gather(
                    *(close() for close in self.closers), return_exceptions=True
                )
        except TimeoutError:
            _log.error("the ssh connections did not close in %g s", _CLOSE_BOUND)
        else:
            for failure in results:
                if isinstance(failure, Exception):
                    _log.error("an ssh connection did not close", exc_info=failure)


class _Call:
    """One call that waits for its answer; all but ``running`` belongs to the trio thread."""

    def __init__(
        self, *, task: trio.lowlevel.Task, late: Callable[[_Result], object] | None
    ) -> None:
        self.task = task
        self.late = late
        self.running: asyncio.Task[Any] | None = None
        self.abandoned = False
        self.raise_cancel: Callable[[], Any] | None = None


class Waker:
    """Wakes one waiting task of trio from the asyncio thread; many pokes make one wake-up."""

    def __init__(self, thread: AsyncioThread) -> None:
        self.muted = False  # whoever waits next looks first; set on the asyncio thread
        self._thread = thread
        self._on_its_way = False
        self._poked = False
        self._task: trio.lowlevel.Task | None = None

    def poke(self) -> None:
        """Wake whoever waits now or next. Called on the asyncio thread."""
        if not (self._on_its_way or self.muted):
            self._on_its_way = True
            self._thread.to_trio(self.fire)

    def fire(self) -> None:
        """Do as ``poke``; called in the trio thread."""
        self._on_its_way = False  # before anyone looks at the news, so that none is missed
        self._poked = True
        task, self._task = self._task, None
        if task is not None:
            trio.lowlevel.reschedule(task)

    async def wait(self) -> None:
        """Wait for a poke that came after the last wait; for one task at a time."""
        if self._poked:
            await trio.lowlevel.checkpoint()
        else:
            if self._task is not None:
                raise RuntimeError("another task waits already")
            self._task = trio.lowlevel.current_task()

            def abort(_: Callable[[], Any]) -> trio.lowlevel.Abort:
                self._task = None
                return trio.lowlevel.Abort.SUCCEEDED

            await trio.lowlevel.wait_task_rescheduled(abort)
        self._poked = False


def _outcome_of(task: asyncio.Task[T]) -> outcome.Outcome[T]:
    """Return how a task ended; its cancellation must not reach trio, which knows nothing of it."""
    if task.cancelled():
        return outcome.Error(AsyncioThreadGone())
    exc = task.exception()
    return outcome.Value(task.result()) if exc is None else outcome.Error(exc)


def _note(_: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """Log what a callback let escape, in asyncssh or in us; the loop goes on."""
    _log.error("in the ssh thread: %s", context.get("message"), exc_info=context.get("exception"))


def _nothing() -> None:
    pass
