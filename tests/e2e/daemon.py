"""``sortie run`` as a process, as a user would start it."""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from types import TracebackType
from typing import Self

import httpx
import trio
from prometheus_client.parser import text_string_to_metric_families

from tests.e2e.place import PATIENCE, SORTIE, Json, Place


class Metrics:
    """The samples of one ``/metrics`` page."""

    def __init__(self, page: str) -> None:
        families = list(text_string_to_metric_families(page))
        self.types = {family.name: family.type for family in families}
        self._samples = [sample for family in families for sample in family.samples]

    def total(self, name: str, **labels: str) -> float:
        """Return the sum of a metric's samples that have these labels; there must be some."""
        values = [
            sample.value
            for sample in self._samples
            if sample.name == name and labels.items() <= sample.labels.items()
        ]
        assert values, f"there is no sample {name}{labels}"
        return sum(values)

    def labels(self, name: str) -> set[str]:
        """Return the names of the labels that a metric's samples have."""
        return {label for sample in self._samples if sample.name == name for label in sample.labels}


class Daemon:
    """A daemon for the length of an ``async with``; at its end it and all its runs are gone.

    Left alone it is ended by SIGTERM, which must succeed. Whatever it writes to stderr must be
    JSON log lines, which ``log`` holds.
    """

    def __init__(
        self, place: Place, nursery: trio.Nursery, command: tuple[str, ...], port: int | None
    ) -> None:
        self._place = place
        self._nursery = nursery
        self._command = command
        self._news = trio.Event()
        self._silent = trio.Event()
        self.environ: Mapping[str, str | None] = {}
        self.url = f"http://127.0.0.1:{port}"
        self.log: list[Json] = []
        self.strays: list[str] = []

    async def __aenter__(self) -> Self:
        read, write = os.pipe()
        self._stderr = trio.lowlevel.FdStream(read)
        env = self._place.environ(self.environ)
        with open(write, "wb") as stderr, open(os.devnull, "wb") as nowhere:
            self.process = await self._place.open(
                self._command, env, nowhere.fileno(), stderr.fileno()
            )
        self._nursery.start_soon(self._read)
        return self

    async def __aexit__(
        self,
        _kind: type[BaseException] | None,
        error: BaseException | None,
        _traceback: TracebackType | None,
    ) -> None:
        with trio.CancelScope(shield=True):
            if error is not None:
                await self._give_up()
                return
            try:
                await self._end()
            except BaseException:
                await self._give_up()
                raise

    async def _end(self) -> None:
        if self.process.returncode is None:
            self.signal(signal.SIGTERM)
            assert await self.exit_code() == 0
        assert self.strays == []
        if self.process.returncode != -signal.SIGKILL:
            self._place.require_no_process()

    async def _give_up(self) -> None:
        """Show what the daemon said, and end it and its runs by force."""
        self.process.kill()
        with trio.move_on_after(PATIENCE):
            await self.process.wait()
        self._place.kill_processes()
        with trio.move_on_after(1.0):
            await self._silent.wait()
        sys.stderr.writelines(f"{json.dumps(line)}\n" for line in self.log)
        sys.stderr.writelines(f"{line}\n" for line in self.strays)

    async def _read(self) -> None:
        rest = b""
        with suppress(trio.ClosedResourceError):
            async for chunk in self._stderr:
                *lines, rest = (rest + chunk).split(b"\n")
                for line in lines:
                    self._keep(line)
                self._ring()
        if rest:
            self._keep(rest)
        self._silent.set()
        self._ring()

    @property
    def is_silent(self) -> bool:
        """Whether nothing holds its stderr any more."""
        return self._silent.is_set()

    async def stop_reading(self) -> None:
        """Close our end of the daemon's stderr; ``log`` holds nothing new from here on."""
        await self._stderr.aclose()

    def _keep(self, line: bytes) -> None:
        try:
            self.log.append(json.loads(line))
        except ValueError:
            self.strays.append(line.decode(errors="replace"))

    def _ring(self) -> None:
        self._news.set()
        self._news = trio.Event()

    def lines(self, event: str, **values: object) -> list[Json]:
        """Return the log lines so far of an event with these values."""
        wanted = {"event": event} | values
        return [line for line in self.log if wanted.items() <= line.items()]

    async def line(
        self, event: str, *, nth: int = 1, within: float = PATIENCE, **values: object
    ) -> Json:
        """Return the nth log line of an event with these values, once it is there."""
        with trio.move_on_after(within):
            while True:
                found = self.lines(event, **values)
                if len(found) >= nth:
                    return found[nth - 1]
                assert not self._silent.is_set(), f"it ended without {event} {values}"
                await self._news.wait()
        raise AssertionError(f"no {event} {values} within {within} s")

    async def until(self, reached: Callable[[], Awaitable[bool]]) -> None:
        """Wait until something is so, as long as the daemon has something to tell now and then."""
        told = -1
        while told != len(self.log):
            told = len(self.log)
            with trio.move_on_after(2 * PATIENCE):
                while not await reached():
                    await trio.sleep(0.05)
                return
        raise AssertionError(f"nothing was told within {2 * PATIENCE} s")

    def signal(self, number: signal.Signals) -> None:
        """Send the daemon a signal."""
        self.process.send_signal(number)

    def kill(self) -> None:
        """Kill it, and let nothing else happen until it is gone."""
        self.process.kill()
        if isinstance(self.process, trio.Process):
            self.process._proc.wait()
        else:
            self.process.wait_here()

    async def exit_code(self, within: float = PATIENCE) -> int:
        """Wait until the daemon is gone and everything it said is read."""
        with trio.fail_after(within):
            code = await self.process.wait()
            await self._silent.wait()
        return code

    async def get(self, path: str, headers: Mapping[str, str] | None = None) -> httpx.Response:
        """Ask the daemon over HTTP, once it listens."""
        await self.line("http.listening")
        async with httpx.AsyncClient(verify=False, trust_env=False, timeout=PATIENCE) as client:
            return await client.get(f"{self.url}{path}", headers=headers)

    async def ready(self, status: int = 200, saying: str = "") -> None:
        """Wait until ``/readyz`` answers with a status, and a word in its text."""
        with trio.fail_after(PATIENCE):
            while True:
                answer = await self.get("/readyz")
                if answer.status_code == status and saying in answer.text:
                    return
                await trio.sleep(0.05)

    async def state(self) -> Json:
        """Return ``/api/v1/state``."""
        answer = await self.get("/api/v1/state")
        assert answer.status_code == 200
        return answer.json()

    async def metrics(self) -> Metrics:
        """Return what ``/metrics`` shows."""
        answer = await self.get("/metrics")
        assert answer.status_code == 200
        return Metrics(answer.text)


def run_command(*options: str, port: int) -> tuple[str, ...]:
    """Return the command line of a daemon that logs JSON and listens on a port."""
    return (SORTIE, "run", "--port", str(port), "--log-format", "json", *options)
