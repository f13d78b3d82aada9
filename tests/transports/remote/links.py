"""A supervised program on this machine, over links that are pipes and can be cut at any byte."""

from __future__ import annotations

import os
import signal
import subprocess
import uuid
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path

import psutil
import trio

from sortie.transports import Command, Stdin
from sortie.transports.remote.namespaces import Namespaces
from sortie.transports.remote.protocol import GO
from sortie.transports.remote.remote_launch import RemoteLaunch
from sortie.transports.remote.supervision import DONE, Supervision
from sortie.transports.remote.supervisor_scripts import SupervisedLaunch

MARK = "SORTIE_TEST_LINK"


class LinkCut(Exception):
    """The link is no more."""


class Link:
    """A shell on this machine; ``cut_after`` is how many bytes of both ways it carries."""

    def __init__(
        self, process: trio.Process, supervision: Supervision, cut_after: int | None
    ) -> None:
        self.process = process
        self.messages: list[str] = []
        self._supervision = supervision
        self._parser = supervision.parser()
        self._left = cut_after
        self._lock = trio.Lock()

    async def write(self, data: bytes) -> None:
        """Write as much as the link carries."""
        assert self.process.stdin is not None
        async with self._lock:
            carried = self._carry(data)
            with suppress(trio.BrokenResourceError, trio.ClosedResourceError):
                await self.process.stdin.send_all(carried)
            if len(carried) < len(data):
                self.cut()

    def cut(self) -> None:
        """Kill the shell, as a session dies with its sshd, and close all pipes."""
        self._left = 0
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)

    def carry_only(self, count: int) -> None:
        """Carry so many bytes from now on."""
        self._left = count

    async def receive(self, sink: Callable[[int, bytes], None]) -> None:
        """Pass on what comes until the link ends."""
        async with trio.open_nursery() as nursery:
            for number, pipe in ((1, self.process.stdout), (2, self.process.stderr)):
                nursery.start_soon(self._receive, number, pipe, sink)
        self.messages.append("over")

    async def _receive(
        self, number: int, pipe: trio.abc.ReceiveStream | None, sink: Callable[[int, bytes], None]
    ) -> None:
        assert pipe is not None
        async with pipe:
            while chunk := await pipe.receive_some(65536):
                carried = self._carry(bytes(chunk))
                for stream, before, message in self._parser.feed(number, carried):
                    if stream and before:
                        sink(stream, before)
                        await self.write(self._supervision.take(stream, before))
                    if message is not None:
                        try:
                            # Before others know of it: what they write comes behind the answer.
                            await self.write(self._supervision.hear(message))
                        finally:
                            self.messages.append(message)
                if len(carried) < len(chunk):
                    self.cut()
                    return

    def _carry(self, data: bytes) -> bytes:
        if self._left is None:
            return data
        carried = data[: self._left]
        self._left -= len(carried)
        return carried


class Host:
    """This machine as a host; its files are below ``directory``."""

    def __init__(self, directory: Path, sh: str = "/bin/sh") -> None:
        self.directory = directory
        self.sh = sh
        self.name = str(uuid.uuid4())
        self.env: Mapping[str, str] = {
            "PATH": os.environ["PATH"],
            "HOME": str(directory),
            "TMPDIR": str(directory),
            MARK: self.name,
        }

    async def shell(self) -> trio.Process:
        return await trio.lowlevel.open_process(
            [self.sh],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
            env=self.env,
            cwd=self.directory,
        )

    def running(self) -> list[str]:
        """Return what still runs."""
        found = []
        for process in psutil.process_iter():
            with suppress(psutil.Error, OSError):
                if process.environ().get(MARK) == self.name:
                    found.append(f"{process.pid} {' '.join(process.cmdline())[:80]}")
        return found

    def files(self) -> list[str]:
        """Return what is left of supervisors."""
        return sorted(path.name for path in self.directory.glob("sortie-run.*"))


class Program:
    """One supervised program, and all that came of it."""

    def __init__(
        self,
        host: Host,
        *argv: str,
        stdin: bytes | Stdin | None = None,
        grace: float = 0.3,
        lease: float = 300.0,
        reattach: float = 300.0,
        kept: int = 8 << 20,
        namespaces: Namespaces | None = None,
        env: Mapping[str, str] | None = None,
    ) -> None:
        command = Command(
            argv=argv,
            cwd=str(host.directory),
            env={"PATH": os.environ["PATH"], **(env or {})},
            stdin=stdin,
            grace=grace,
        )
        self.launch = RemoteLaunch(
            command=command, nonce=f"n-{uuid.uuid4().hex}", lease=lease, namespaces=namespaces
        )
        self.host = host
        self.supervision = Supervision(
            SupervisedLaunch(launch=self.launch, reattach=reattach, kept=kept)
        )
        self.output = {1: bytearray(), 2: bytearray()}
        self.link: Link | None = None
        self.links = 0
        self.sink: Callable[[int, bytes], None] = self._take
        self._all: list[Link] = []

    def said_everywhere(self) -> list[str]:
        """Return all messages, of all links."""
        return [message for link in self._all for message in link.messages]

    def _take(self, stream: int, chunk: bytes) -> None:
        self.output[stream] += chunk

    async def start(self, nursery: trio.Nursery) -> None:
        """Start it; return when it is attached."""
        text = self.supervision.opening()
        link = await self._open(nursery, text, None)
        await self.heard("here")
        await link.write(self.supervision.starting())
        await self.heard("here", 2)
        await link.write(GO)
        if self.launch.stdin:
            await self.heard("send")
            await link.write(self.launch.stdin)
            await self.heard("stored")
        await link.write(GO if self.launch.stdin else b"")
        await self.heard("attached")

    async def reattach(self, nursery: trio.Nursery, cut_after: int | None = None) -> str:
        """Attach a new link; return what is said, ``over`` where the link is cut before."""
        text = self.supervision.attaching(f"n-{uuid.uuid4().hex}")
        await self._open(nursery, text, cut_after)
        with trio.fail_after(60):
            while True:
                for message in self.link.messages if self.link else ():
                    name = message.partition(" ")[0]
                    if name in ("attached", "stale", "absent", "unwatched", "over"):
                        return name
                await trio.sleep(0.005)

    async def _open(self, nursery: trio.Nursery, text: bytes, cut_after: int | None) -> Link:
        self.link = link = Link(await self.host.shell(), self.supervision, cut_after)
        self.links += 1
        self._all.append(link)
        nursery.start_soon(link.receive, self.sink)
        await link.write(text)
        return link

    async def send(self, data: bytes) -> None:
        """Send stdin, over whatever links there are."""
        while data:
            room = self.supervision.stdin_room
            if not room:
                await trio.sleep(0.002)
                continue
            written = self.supervision.send(data[:room])
            data = data[room:]
            if self.link is not None:
                await self.link.write(written)

    async def heard(self, name: str, times: int = 1) -> None:
        """Wait for a message on the newest link."""
        assert self.link is not None
        with trio.fail_after(60):
            while True:
                found = [m for m in self.link.messages if m.partition(" ")[0] == name]
                if len(found) >= times:
                    return
                assert "over" not in self.link.messages, self.link.messages
                await trio.sleep(0.002)

    async def finish(self) -> None:
        """Wait until all was heard, and let the supervisor end."""
        with trio.fail_after(60):
            while self.supervision.gone is None:
                await trio.sleep(0.005)
            assert self.link is not None
            await self.link.write(DONE)

    async def cleared(self) -> None:
        """Wait until nothing is left on the host."""
        with trio.move_on_after(60):
            while self.host.running() or self.host.files():
                await trio.sleep(0.01)
        assert (self.host.running(), self.host.files()) == ([], [])
