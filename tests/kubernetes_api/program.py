"""One program in a pod of the stand-in, over a WebSocket."""

from __future__ import annotations

import json
import subprocess
from contextlib import suppress
from typing import Any

import trio
from starlette.websockets import WebSocket, WebSocketDisconnect

from tests.kubernetes_api.kubelet import Kubelet
from tests.kubernetes_api.objects import Json

_CHUNK = 32 * 1024


class Program:
    """One program in a pod: it goes on where its link is lost, with the end of its stdin."""

    def __init__(
        self, kubelet: Kubelet, socket: WebSocket, pod: Json, env: dict[str, str], argv: list[str]
    ) -> None:
        self._kubelet = kubelet
        self._socket = socket
        self._pod = pod
        self._env = env
        self._argv = argv
        self._lock = trio.Lock()

    async def run(self, scope: trio.CancelScope) -> None:
        """Run it to its end, which is told behind all its output."""
        process = await trio.lowlevel.open_process(
            self._argv,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=self._env,
            cwd="/",
            start_new_session=True,
        )
        self._kubelet.note(self._pod["metadata"]["uid"], process.pid)
        try:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self._feed, process, scope)
                async with trio.open_nursery() as readers:
                    readers.start_soon(self._pass_on, 1, process.stdout)
                    readers.start_soon(self._pass_on, 2, process.stderr)
                    code = await process.wait()
                await self._tell(code)
                nursery.cancel_scope.cancel()
        finally:
            for stream in (process.stdin, process.stdout, process.stderr):
                with trio.CancelScope(shield=True):
                    await stream.aclose()  # type: ignore[union-attr]
            self._kubelet.nursery.start_soon(process.wait)  # the runtime reaps it

    async def _feed(self, process: trio.Process, scope: trio.CancelScope) -> None:
        assert process.stdin is not None
        try:
            while True:
                message = await self._socket.receive_bytes()
                await self._kubelet.heard(self._pod)
                if message[:2] == b"\xff\x00":
                    await process.stdin.aclose()
                elif message[:1] == b"\x00":
                    with suppress(trio.BrokenResourceError, trio.ClosedResourceError):
                        await process.stdin.send_all(message[1:])
        except WebSocketDisconnect:
            scope.cancel()

    async def _pass_on(self, number: int, stream: Any) -> None:
        while chunk := await stream.receive_some(_CHUNK):
            await self._send(bytes([number]) + chunk)

    async def _tell(self, code: int) -> None:
        status: Json = {"metadata": {}, "status": "Success"}
        if code:
            code = 128 - code if code < 0 else code
            status = {
                "metadata": {},
                "status": "Failure",
                "message": f"command terminated with non-zero exit code: exit status {code}",
                "reason": "NonZeroExitCode",
                "details": {"causes": [{"reason": "ExitCode", "message": str(code)}]},
            }
        await self._send(b"\x03" + json.dumps(status).encode())

    async def _send(self, message: bytes) -> None:
        async with self._lock:
            await self._kubelet.heard(self._pod)
            await self._socket.send_bytes(message)
