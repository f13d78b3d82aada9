"""A way to a PostgreSQL server that loses what is said on it.

It knows of the protocol only that a simple query is a message ``Q``, with which stores commit.
"""

from __future__ import annotations

from contextlib import suppress

import trio


class PostgresProxy:
    """Passes on what is said. While ``is_away`` nobody gets through; while ``is_silent`` what the
    server says is kept back. ``lost`` counts the commits without an answer, and ``connections``
    those who came while it was silent."""

    def __init__(self, server_port: int) -> None:
        self._server_port = server_port
        self.port = 0
        self.is_away = False
        self.is_silent = False
        self.lost = 0
        self.connections = 0
        self._losing: tuple[bool, bool] | None = None
        self._is_deaf = False
        self._scopes: set[trio.CancelScope] = set()

    def lose_commit(self, *, passed_on: bool, then_away: bool) -> None:
        """Break the connection in the next COMMIT, before or after the server has made it."""
        self._losing = (passed_on, then_away)

    def refuse(self) -> None:
        """Break all connections, and let no new one through."""
        self.is_away = True
        for scope in self._scopes:
            scope.cancel()

    def heal(self) -> None:
        """Lose nothing any more."""
        self.is_away, self._losing = False, None

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Listen until cancelled."""
        (listener,) = await trio.open_tcp_listeners(0, host="127.0.0.1")
        self.port = listener.socket.getsockname()[1]
        task_status.started()
        await trio.serve_listeners(self._serve, [listener])

    async def _serve(self, client: trio.SocketStream) -> None:
        self.connections += self.is_silent
        if self.is_away:
            await client.aclose()
            return
        async with (
            client,
            await trio.open_tcp_stream("127.0.0.1", self._server_port) as server,
            trio.open_nursery() as nursery,
        ):
            self._scopes.add(nursery.cancel_scope)
            nursery.start_soon(self._up, client, server, nursery.cancel_scope)
            nursery.start_soon(self._down, client, server, nursery.cancel_scope)

    async def _up(
        self, client: trio.SocketStream, server: trio.SocketStream, scope: trio.CancelScope
    ) -> None:
        with suppress(trio.BrokenResourceError, trio.ClosedResourceError):
            async for data in client:
                if self._losing is not None and data.startswith(b"Q") and b"COMMIT" in data:
                    (passed_on, self.is_away), self._losing = self._losing, None
                    self.lost += 1
                    if not passed_on:
                        break
                    self._is_deaf = True
                    await server.send_all(bytes(data))
                    return  # the answer ends the connection
                await server.send_all(bytes(data))
        scope.cancel()

    async def _down(
        self, client: trio.SocketStream, server: trio.SocketStream, scope: trio.CancelScope
    ) -> None:
        with suppress(trio.BrokenResourceError, trio.ClosedResourceError):
            async for data in server:
                if self._is_deaf:
                    self._is_deaf = False
                    break
                while self.is_silent:
                    await trio.sleep(0.01)
                await client.send_all(bytes(data))
        scope.cancel()
