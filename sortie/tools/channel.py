"""The channel of a run: files and FIFOs in its workspace, and programs of the run at their ends.

Rule 1: one program waits for the next client, so that nothing is looked at until one comes; at most
CLIENTS_LIMIT serve others meanwhile.
Rule 2: a client says the token of the run in its first line, or is sent away.
Rule 3: nothing that a client or its program does ends the run; that the tools are gone is told.
"""

from __future__ import annotations

import secrets
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from importlib.resources import files as resources
from itertools import count

import trio
from msgspec import Struct

from sortie.agents import McpServer
from sortie.model import RunId, TransportError
from sortie.model.hiding import repr_without
from sortie.resources import run_in_thread
from sortie.telemetry import Publish, facts
from sortie.tools.calls import ToolCalls
from sortie.tools.client_lines import ClientLines
from sortie.tools.commands import guide
from sortie.tools.connection import LAST_PATIENCE, Send, Serve, ToolConnection
from sortie.transports import Command, Files, Stdin, Transport
from sortie.workspaces.workspace_files import hide

FOLDER = ".sortie/tools"
"""Where the channel is, below the workspace."""

CLIENTS_LIMIT = 8
"""Clients of a run that are served at once."""

FAILURES_LIMIT = 3
"""Programs in a row that end before a client has come, after which there are no tools until the
next turn."""

_SHELL = "/bin/sh"
_TOKEN_SIZE = 64
_GRACE = 1.0
_PAUSE = 1.0
_BURST = 20
"""Clients that a run may have one right after the other; for each further one a pause is made."""

_CONNECT, _ACCEPT, _CALL, _TOKEN = "connect.sh", "accept.sh", "call.sh", "token"
_SCRIPTS = (_CONNECT, _ACCEPT, _CALL)


class ToolPlace(Struct, frozen=True, kw_only=True):
    """Where the tools of a run are: ``transport`` starts its programs with the environment
    ``env``, in its ``workspace``."""

    run_id: RunId
    workspace: str
    transport: Transport
    env: Mapping[str, str]
    token: str

    __repr__ = repr_without("env", "token")


def new_token() -> str:
    """Return the token of a run."""
    return secrets.token_hex(_TOKEN_SIZE // 2)


@asynccontextmanager
async def tool_channel(
    place: ToolPlace, calls: ToolCalls, publish: Publish
) -> AsyncIterator[ToolChannel | None]:
    """Have a channel for the agent of a run; None where it cannot be had, which is told."""
    channel = ToolChannel(place, calls, publish)
    is_there = await channel.prepare()
    error: Exception | None = None
    async with trio.open_nursery() as nursery:
        if is_there:
            nursery.start_soon(channel.listen, nursery)
        try:
            yield channel if is_there else None
        except Exception as exc:  # a nursery would wrap it
            error = exc
        nursery.cancel_scope.cancel()
    if is_there:
        await channel.remove()
    if error is not None:
        raise error


class ToolChannel:
    """The channel of a run; ``server`` is what its agent starts as a client."""

    def __init__(self, place: ToolPlace, calls: ToolCalls, publish: Publish) -> None:
        self._place = place
        self._calls = calls
        self._publish = publish
        self._clients = trio.CapacityLimiter(CLIENTS_LIMIT)
        self._serve: Serve = _no_sdk
        self._waiting: ToolConnection | None = None
        self._renewed = trio.Event()
        self.server = McpServer(
            name="sortie",
            argv=(_SHELL, self._path(_CONNECT)),
            guide=guide(self._path(_CALL), calls.names),
        )

    async def prepare(self) -> bool:
        """Write the files of the channel, in place of what an earlier run left; False where that is
        not possible."""
        try:
            self._serve = await run_in_thread(_server_of_sdk)
            await self._place.transport.files.together(self._write)
        except (TransportError, ImportError) as exc:
            self._tell_of_loss(str(exc))
            return False
        return True

    async def renew(self) -> None:
        """Write the files again where they are gone, as after ``git clean -x``; clients that are
        connected stay so."""
        files, name = self._place.transport.files, f"{FOLDER}/{_TOKEN}"
        try:
            found = await files.read_file(self._place.workspace, name, _TOKEN_SIZE + 1)
            if found == self._token_line:
                return
            await files.together(self._write)
        except TransportError as exc:
            self._tell_of_loss(str(exc))
            return
        self._renewed.set()
        self._renewed = trio.Event()
        if self._waiting is not None:
            self._waiting.give_up()

    async def remove(self) -> None:
        """Remove the files, if that is quickly done: what they hold is of no use any more."""
        with trio.move_on_after(LAST_PATIENCE, shield=True), suppress(TransportError):
            await self._place.transport.files.together(self._clear)

    async def listen(self, nursery: trio.Nursery) -> None:
        """Have a program wait for a client, and another one once that has come."""
        failures = 0
        place = self._place
        for number in count(1):
            await self._clients.acquire_on_behalf_of(number)
            self._waiting = ToolConnection(place.transport, place.token, self._calls, self._serve)
            why = await nursery.start(self._connection, self._waiting, number)
            failures = 0 if why is None else failures + 1
            if failures >= FAILURES_LIMIT:
                self._tell_of_loss(str(why))
                await self.remove()  # so that no agent waits for a connection
                failures = 0
                await self._renewed.wait()
                continue
            if failures or number > _BURST:
                await trio.sleep(_PAUSE * 2**failures)

    async def _connection(
        self,
        connection: ToolConnection,
        number: int,
        task_status: trio.TaskStatus[str | None] = trio.TASK_STATUS_IGNORED,
    ) -> None:
        """Serve the next client; its start tells why none can come, None where one has."""
        try:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(connection.live, self._command(number))
                await connection.came_or_ended.wait()
                has_failed = not (connection.has_client or connection.is_given_up)
                task_status.started(connection.end if has_failed else None)
        finally:
            self._clients.release_on_behalf_of(number)
        if connection.has_client and connection.end is not None:
            self._publish(facts.ToolClientLost(run_id=self._place.run_id, reason=connection.end))

    async def _clear(self, files: Files) -> None:
        above, _, folder = FOLDER.partition("/")
        await files.remove_directory(f"{self._place.workspace}/{above}", folder)

    async def _write(self, files: Files) -> None:
        await hide(files, self._place.workspace)  # what removed the files may have removed that
        await self._clear(files)
        texts = {name: resources(__package__).joinpath("sh", name) for name in _SCRIPTS}
        content = {name: text.read_bytes() for name, text in texts.items()}
        content[_TOKEN] = self._token_line
        for name, text in content.items():
            await files.write_file(self._place.workspace, f"{FOLDER}/{name}", text)

    def _command(self, number: int) -> Command:
        return Command(
            argv=(_SHELL, self._path(_ACCEPT), self._path(str(number))),
            cwd=self._place.workspace,
            env=self._place.env,
            stdin=Stdin.PIPE,
            grace=_GRACE,
        )

    @property
    def _token_line(self) -> bytes:
        return f"{self._place.token}\n".encode()

    def _path(self, name: str) -> str:
        return f"{self._place.workspace}/{FOLDER}/{name}"

    def _tell_of_loss(self, error: str) -> None:
        self._publish(facts.ToolsLost(run_id=self._place.run_id, error=error))


def _server_of_sdk() -> Serve:
    """Import the server, which takes a second. Raises ImportError."""
    from sortie.tools.server import serve

    return serve


async def _no_sdk(_lines: ClientLines, _send: Send, _calls: ToolCalls) -> None:
    raise RuntimeError("the server of the tools is imported before a client can come")
