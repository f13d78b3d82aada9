"""Tasks that outlive the task that starts them: the WebSockets of a cluster, and its lease.

Rule: a task that was started here lets no exception out, and has ended when this is closed.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import suppress
from contextvars import copy_context

import trio

from sortie.resources.lease import LeaseLost


class Background:
    """Runs tasks until it is closed."""

    def __init__(self) -> None:
        self._scopes: set[trio.CancelScope] = set()
        self._none_left = trio.Event()
        self.closed = False

    def start(self, task: Callable[[], Awaitable[None]]) -> trio.CancelScope:
        """Start a task; return the scope that ends it. Raises RuntimeError after ``aclose``."""
        if self.closed:
            raise RuntimeError("nothing can be started in the background any more")
        scope = trio.CancelScope()
        self._scopes.add(scope)
        # It works for the workflow, and by the lease, of the task that starts it.
        trio.lowlevel.spawn_system_task(self._run, task, scope, context=copy_context())
        return scope

    async def _run(self, task: Callable[[], Awaitable[None]], scope: trio.CancelScope) -> None:
        try:
            with scope, suppress(LeaseLost):  # others of the workflow meet it, too
                await task()
        finally:
            self._scopes.discard(scope)
            if not self._scopes:
                self._none_left.set()
                self._none_left = trio.Event()

    async def aclose(self) -> None:
        """End all tasks."""
        self.closed = True
        for scope in self._scopes:
            scope.cancel()
        while self._scopes:
            await self._none_left.wait()
