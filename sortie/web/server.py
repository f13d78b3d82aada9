"""Serve an application on listening sockets with hypercorn's trio connections.

Hypercorn's own accept loop has no limit on connections, and its sends cannot be cancelled, so that
a client which reads nothing could hold up the end of the daemon. Accepting is therefore done here.

Rule 1: at most ``connection_limit`` are open; a newcomer beyond them, or for which there is no
descriptor, takes the oldest one's place.
Rule 2: leaving ``serve`` takes no longer than closing the sockets, whatever clients do.
Rule 3: what goes wrong on a connection ends that connection only.
"""

from __future__ import annotations

import logging
import traceback
from typing import Any, cast

import trio
from hypercorn.app_wrappers import ASGIWrapper
from hypercorn.config import Config
from hypercorn.trio.tcp_server import TCPServer
from hypercorn.trio.worker_context import WorkerContext
from hypercorn.typing import ConnectionState
from starlette.types import ASGIApp

from sortie.facts import AdapterCrashed, HttpListening, HttpPortTaken
from sortie.resources import note, shortage_behind
from sortie.resources.descriptors import open_files_limit
from sortie.telemetry import Publish
from sortie.web.event_stream import ABORT
from sortie.web.listener import HttpListener

MAX_CONNECTIONS, MIN_CONNECTIONS = 100, 4
_FILES_PER_CONNECTION = 8
_ACCEPT_PAUSE = 0.1


def connection_limit(files: int) -> int:
    """Return how many connections are open at most, where this process may open so many files.

    It is an eighth of them: runs need the others.
    """
    return max(MIN_CONNECTIONS, min(MAX_CONNECTIONS, files // _FILES_PER_CONNECTION))


async def serve(
    app: ASGIApp,
    listener: HttpListener,
    publish: Publish,
    *,
    most: int = MAX_CONNECTIONS,
    task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED,
) -> None:
    """Serve until cancelled, then close every socket at once; started when it accepts.

    No more than ``most`` connections are open.
    """
    connections = _Connections(app, publish, min(most, connection_limit(open_files_limit())))
    listeners = [
        trio.SocketListener(trio.socket.from_stdlib_socket(sock)) for sock in listener.sockets
    ]
    if listener.wanted_port is not None:
        publish(HttpPortTaken(port=listener.wanted_port))
    publish(HttpListening(url=listener.url))
    async with trio.open_nursery() as nursery:
        try:
            task_status.started()
            async with trio.open_nursery() as accepting:
                for one in listeners:
                    accepting.start_soon(connections.accept, one, nursery)
        finally:
            connections.close_all()


class _Connections:
    """The open connections, oldest first."""

    def __init__(self, app: ASGIApp, publish: Publish, limit: int) -> None:
        self._limit = limit
        self._app = ASGIWrapper(cast(Any, app))
        self._publish = publish
        self._config = _config()
        self._context = WorkerContext(None)
        self._open: dict[trio.SocketStream, trio.CancelScope] = {}
        self._crashes = 0

    async def accept(self, listener: trio.SocketListener, nursery: trio.Nursery) -> None:
        """Take in connections until cancelled, then close the listener.

        Where there is no descriptor, the oldest connection gives way.
        """
        async with listener:
            while True:
                try:
                    stream = await listener.accept()
                except OSError as exc:
                    shortage = shortage_behind(exc)
                    if shortage is None:
                        raise
                    note(shortage)
                    self._close_oldest()
                    await trio.sleep(_ACCEPT_PAUSE)
                else:
                    nursery.start_soon(self.handle, stream)

    async def handle(self, stream: trio.SocketStream) -> None:
        while len(self._open) >= self._limit:
            self._close_oldest()
        with trio.CancelScope() as scope:
            self._open[stream] = scope
            try:
                await self._serve(stream)
            finally:
                self._open.pop(stream, None)
                stream.socket.close()

    def close_all(self) -> None:
        for stream in tuple(self._open):
            self._close(stream)

    def _close_oldest(self) -> None:
        if self._open:
            self._close(next(iter(self._open)))

    def _close(self, stream: trio.SocketStream) -> None:
        # A send is shielded in hypercorn and ends with its socket only; all else can be cancelled.
        if (scope := self._open.pop(stream, None)) is not None:
            scope.cancel()
            stream.socket.close()

    async def _serve(self, stream: trio.SocketStream) -> None:
        # The type that hypercorn declares is that of its TLS connections.
        state = ConnectionState({ABORT: lambda: self._close(stream)})
        connection = TCPServer(self._app, self._config, self._context, state, cast(Any, stream))
        try:
            await connection
        except Exception:
            # Bytes from outside reach parsers that are not ours (a malformed HTTP2-Settings header
            # is enough): their failure must not be ours.
            self._report_crash(traceback.format_exc())

    def _report_crash(self, text: str) -> None:
        # Any client can cause these; reported at 1, 2, 4, 8 ... they cannot fill the log.
        self._crashes += 1
        if self._crashes.bit_count() == 1:
            where = f"an HTTP connection ({self._crashes} so far)"
            self._publish(AdapterCrashed(where=where, traceback=text))


def _config() -> Config:
    config = Config()
    config.accesslog = None
    config.errorlog = logging.getLogger("hypercorn.error")
    config.include_server_header = False
    # Counts from the connection's beginning too: it bounds clients that send half a request.
    config.keep_alive_timeout = 5.0
    config.h11_max_incomplete_size = 16 * 1024
    config.h2_max_concurrent_streams = 10
    return config
