"""A remote host's transport that knows whether the host can be used, and which runs may have left
processes there.

Rule 1: each trouble is told when it is met, and its end with the first use that succeeds.
Rule 2: runs whose processes could not be ended for certain are swept before anything else is done
on the host; while some of their processes stay, the host is in trouble.
Rule 3: a pod that was lost is no trouble of the host, and leaves nothing to be swept: what makes
the next one sees to it that the one before has gone.
"""

from __future__ import annotations

from collections.abc import (
    AsyncIterator,
    Awaitable,
    Callable,
    Collection,
    Coroutine,
    Mapping,
    Sequence,
)
from contextlib import (
    AbstractAsyncContextManager,
    AbstractContextManager,
    asynccontextmanager,
)
from typing import Any, Concatenate, ParamSpec, TypeVar

import trio
from msgspec import Struct

from sortie.model import (
    HostError,
    HostTrouble,
    ProcessesLeft,
    ProcessIdentity,
    RunId,
    TransportError,
)
from sortie.resources import note, shortage_behind
from sortie.transports import (
    COOKIE,
    Command,
    Files,
    ForwardsSockets,
    Process,
    Script,
    Transport,
)
from sortie.transports.kept_programs import KeepsPrograms
from sortie.transports.lost_links import LinkChanged, following_links

_SWEEP_GRACE = 5.0  # seconds between SIGTERM and SIGKILL
T = TypeVar("T")
P = ParamSpec("P")


class HostHealth(Struct, frozen=True, kw_only=True):
    """What is called at a trouble, at its end, and with the number of left-over processes ended."""

    troubled: Callable[[str, HostError], object]
    reached: Callable[[str], object]
    reaped: Callable[[str, int], object]


class MonitoredTransport:
    """Passes everything on to another transport, and notes how it went.

    ``unswept`` are the runs to be swept first; transports of one host may share it. ``hold`` makes
    a root ours before it is written to, or raises HostError.
    """

    def __init__(
        self,
        transport: Transport,
        watch: HostHealth,
        unswept: set[RunId] | None = None,
        hold: Callable[[str], Awaitable[None]] | None = None,
    ) -> None:
        self.files = MonitoredFiles(self, transport.files, hold)
        self._transport = transport
        self._watch = watch
        self._unswept = set() if unswept is None else unswept
        self._sweeping = trio.Lock()
        self._usable = False
        self._last_failure: HostError | None = None

    @property
    def host(self) -> str:
        """The host's name."""
        return self._transport.host

    def hurry(self) -> None:
        """See the port."""
        self._transport.hurry()

    def process(self, command: Command) -> AbstractAsyncContextManager[Process]:
        """See the port. A run whose link was lost is looked for before the host's next use."""
        return self._process(command)

    @property
    def keeps_programs(self) -> bool:
        """See KeepsPrograms."""
        return isinstance(self._transport, KeepsPrograms) and self._transport.keeps_programs

    async def kept(self, names: Collection[str]) -> Collection[str]:
        """See KeepsPrograms."""
        assert isinstance(self._transport, KeepsPrograms)
        return await self.ask(self._transport.kept(names))

    def adopted(self, command: Command, name: str) -> AbstractAsyncContextManager[Process]:
        """See KeepsPrograms."""
        return self._process(command, name)

    def _opened(self, command: Command, adopts: str | None) -> AbstractAsyncContextManager[Process]:
        if adopts is None:
            return self._transport.process(command)
        assert isinstance(self._transport, KeepsPrograms)
        return self._transport.adopted(command, adopts)

    @asynccontextmanager
    async def _process(self, command: Command, adopts: str | None = None) -> AsyncIterator[Process]:
        await self.sweep_first()
        started = False
        try:
            async with self._opened(command, adopts) as process:
                started = True
                self._succeeded()
                yield process
        except TransportError as exc:
            cookie = command.env.get(COOKIE)
            trouble = exc.trouble if isinstance(exc, HostError) else None
            lost = trouble is HostTrouble.DROPPED
            if (
                cookie is not None
                and trouble is not HostTrouble.DISRUPTED
                and (started or lost or isinstance(exc, ProcessesLeft))
            ):
                self._unswept.add(RunId(cookie))
            if isinstance(exc, HostError):
                self._failed(exc)
            raise

    async def sweep(
        self,
        run_ids: Collection[RunId],
        *,
        grace: float,
        roots: Mapping[RunId, ProcessIdentity] | None = None,
    ) -> int:
        """See the port. Where the host cannot be asked now, it is before its next use."""
        try:
            return await self.ask(self._transport.sweep(run_ids, grace=grace, roots=roots))
        except HostError:
            self._unswept |= set(run_ids)
            raise

    async def sweep_first(self) -> None:
        """End what may be left of earlier runs. Raises HostError where that cannot be done now."""
        if not self._unswept:
            return
        before = self._last_failure
        async with self._sweeping:
            if self._last_failure is not before and self._last_failure is not None:
                # Or the tasks that wait here would try the host one after the other.
                raise HostError(
                    self._last_failure.trouble, str(self._last_failure)
                ) from self._last_failure
            run_ids = frozenset(self._unswept)
            if not run_ids:
                return
            try:
                count = await self.ask(self._transport.sweep(run_ids, grace=_SWEEP_GRACE))
            except ProcessesLeft as exc:
                trouble = HostError(HostTrouble.OCCUPIED, f"{exc} (on host {self.host})")
                self._failed(trouble)
                raise trouble from exc
            except HostError:
                raise
            except TransportError:
                # It has no /proc. What ran there ends by its lease, and that has been waited for.
                count = 0
            self._unswept -= run_ids
            self._watch.reaped(self.host, count)

    async def clear(self, path: str, *, grace: float) -> int:
        """See the port."""
        await self.sweep_first()
        return await self.ask(self._transport.clear(path, grace=grace))

    async def occupied(self, path: str) -> Sequence[int]:
        """See the port."""
        return await self.ask(self._transport.occupied(path))

    async def run_script(self, script: Script) -> bytes:
        """See the port."""
        return await self.ask(self._transport.run_script(script))

    async def resolve_program(self, name: str, path: str | None = None) -> str:
        """See the port."""
        return await self.ask(self._transport.resolve_program(name, path))

    def following_links(self, run_id: RunId, changed: LinkChanged) -> AbstractContextManager[None]:
        """See OutlivesLinks."""
        return following_links(self._transport, run_id, changed)

    def forwarded(self, path: str, here: str) -> AbstractAsyncContextManager[None]:
        """See ForwardsSockets."""
        if isinstance(self._transport, ForwardsSockets):
            return self._transport.forwarded(path, here)
        raise TransportError(f"no socket can be forwarded from host {self.host}")

    async def ask(self, request: Awaitable[T]) -> T:
        """Await a request to the host, and note how that went."""
        try:
            answer = await request
        except HostError as exc:
            self._failed(exc)
            raise
        self._succeeded()
        return answer

    def _succeeded(self) -> None:
        if not self._usable:
            self._usable = True
            self._watch.reached(self.host)

    def _failed(self, error: HostError) -> None:
        if error.trouble is HostTrouble.DISRUPTED:
            return
        self._last_failure = error
        shortage = shortage_behind(error)
        if shortage is not None:  # of this machine: the host has no part in it
            note(shortage)
            return
        self._usable = False
        self._watch.troubled(self.host, error)


def _asked(
    method: Callable[Concatenate[Files, P], Awaitable[T]],
) -> Callable[Concatenate[MonitoredFiles, P], Coroutine[Any, Any, T]]:
    """Return an operation that is passed on, and noted."""

    async def ask(self: MonitoredFiles, /, *args: P.args, **options: P.kwargs) -> T:
        operation = getattr(self.files, method.__name__)
        return await self.monitored.ask(operation(*args, **options))

    return ask


class MonitoredFiles:
    """Passes everything on to the files of a monitored host."""

    contained = _asked(Files.contained)
    read_file = _asked(Files.read_file)
    read_file_inside = _asked(Files.read_file_inside)
    write_file = _asked(Files.write_file)
    remove_file = _asked(Files.remove_file)

    def __init__(
        self,
        monitored: MonitoredTransport,
        files: Files,
        hold: Callable[[str], Awaitable[None]] | None,
    ) -> None:
        self.monitored = monitored
        self.files = files
        self._hold = hold

    async def together(self, work: Callable[[Files], Coroutine[Any, Any, T]]) -> T:
        """Do several operations, one after the other; see the port."""
        return await work(self)

    async def make_directory(self, root: str, name: str) -> tuple[str, bool]:
        """See the port."""
        await self._prepare(root)
        return await self.monitored.ask(self.files.make_directory(root, name))

    async def remove_directory(self, root: str, name: str) -> bool:
        """See the port."""
        await self._prepare(root)
        return await self.monitored.ask(self.files.remove_directory(root, name))

    async def _prepare(self, root: str) -> None:
        """End what earlier runs left on the host, and make the root ours."""
        await self.monitored.sweep_first()
        if self._hold is not None:
            await self.monitored.ask(self._hold(root))
