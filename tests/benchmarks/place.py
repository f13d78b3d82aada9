"""A directory with a daemon, as a user would start it, and agents that cost as little as may be."""

from __future__ import annotations

import http.client
import json
import os
import signal
import subprocess
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import psutil

from tests.benchmarks.spending import Spending, Spent, counted, helpers, peak_memory, spent_by
from tests.e2e.place import PROMPT, SORTIE, Place
from tests.ports import free_port

PATIENCE = 90.0
"""Seconds after which something awaited has gone wrong."""

HANDED_OFF = "Human Review"

Json = Any


def _unwatched(_pid: int) -> AbstractContextManager[object]:
    return nullcontext()


@dataclass(frozen=True, slots=True, kw_only=True)
class Observer:
    """Looks on while a row is measured: ``program`` is what runs as the daemon, and ``watch`` is
    entered with its pid for as long as it is counted what the daemon spends."""

    program: tuple[str, ...] = (SORTIE,)
    watch: Callable[[int], AbstractContextManager[object]] = _unwatched


_observer = Observer()


@contextmanager
def observed_by(observer: Observer) -> Iterator[None]:
    """Have somebody look on at all daemons that are started within the block."""
    global _observer
    before, _observer = _observer, observer
    try:
        yield
    finally:
        _observer = before


class Marks:
    """A FIFO into which agents write a line when they begin and end; when each came is noted."""

    def __init__(self, path: Path) -> None:
        self.path = path
        os.mkfifo(path)
        self._fd = os.open(path, os.O_RDWR)  # agents never wait for a reader
        self._news = threading.Condition()
        self._seen: list[tuple[str, float]] = []
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        while chunk := os.read(self._fd, 65536):
            now = time.perf_counter()
            with self._news:
                self._seen += [(word, now) for word in chunk.decode().split()]
                self._news.notify_all()

    def clear(self) -> None:
        """Forget what has come."""
        with self._news:
            self._seen.clear()

    def seen(self, word: str) -> list[float]:
        """Return when the marks of this word came."""
        with self._news:
            return self._found(word)

    def wait(self, word: str, nth: int = 1) -> float:
        """Wait for the nth mark of this word and return when it came."""

        def enough() -> bool:
            return len(self._found(word)) >= nth

        with self._news:
            if not self._news.wait_for(enough, PATIENCE):
                raise AssertionError(f"there are no {nth} marks {word!r}")
            return self._found(word)[nth - 1]

    def _found(self, word: str) -> list[float]:
        return [at for mark, at in self._seen if mark == word]


class Daemon:
    """``sortie run`` as a process of its own, whose log and processor time can be asked for."""

    def __init__(self, place: Place, *options: str, level: str = "info") -> None:
        self._place = place
        self._watch = _observer.watch
        self.port = free_port()
        self._news = threading.Condition()
        self._lines: dict[str, list[Json]] = defaultdict(list)
        self._over = False
        self.began = time.perf_counter()
        words = ("run", "--port", str(self.port), "--log-format", "json", "--log-level", level)
        self.process = subprocess.Popen(
            [*_observer.program, *words, *options],
            cwd=place.root,
            env=place.environ({}),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
        )
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    @property
    def pid(self) -> int:
        """Its process id."""
        return self.process.pid

    def spent(self) -> Spent:
        """Return what it has spent so far; its agents are the children."""
        return spent_by(self.pid)

    @contextmanager
    def spending(self) -> Iterator[Spending]:
        """Count what it spends within the block, which an observer may let begin a little later:
        how much is done meanwhile has to be counted within the block, too."""
        with self._watch(self.pid), counted(self.spent) as spending:
            yield spending

    def memory(self) -> int:
        """Return its resident memory in bytes, with its helpers'."""
        return sum(psutil.Process(pid).memory_info().rss for pid in (self.pid, *helpers(self.pid)))

    def peak(self) -> int:
        """Return the most resident memory that it had so far, with its helpers'."""
        return sum(map(peak_memory, (self.pid, *helpers(self.pid))))

    def _read(self) -> None:
        assert self.process.stderr is not None
        for text in self.process.stderr:
            at = time.perf_counter()
            try:
                line = json.loads(text)
            except ValueError:
                line = {"event": "unreadable", "text": text.decode(errors="replace")}
            with self._news:
                self._lines[line["event"]].append(line | {"seen_at": at})
                self._news.notify_all()
        with self._news:
            self._over = True
            self._news.notify_all()

    def lines(self, event: str, **values: object) -> list[Json]:
        """Return the log lines so far of an event with these values; ``seen_at`` says when."""
        with self._news:
            return self._found(event, values)

    def take(self, event: str, **values: object) -> list[Json]:
        """Return the log lines of an event with these values, and forget all of that event."""
        with self._news:
            found = self._found(event, values)
            self._lines.pop(event, None)
            return found

    def wait(self, event: str, nth: int = 1, **values: object) -> Json:
        """Wait for the nth log line of an event with these values."""

        def enough() -> bool:
            return self._over or len(self._found(event, values)) >= nth

        with self._news:
            done = self._news.wait_for(enough, PATIENCE)
            found = self._found(event, values)
            if done and len(found) >= nth:
                return found[nth - 1]
            told = {name: len(lines) for name, lines in self._lines.items()}
            wrong = [line for name in ("unreadable", "run.finished") for line in self._lines[name]]
            raise AssertionError(f"no {nth} lines {event} {values}, but {told}: {wrong[:5]}")

    def _found(self, event: str, values: Mapping[str, object]) -> list[Json]:
        return [line for line in self._lines[event] if values.items() <= line.items()]

    def refresh(self) -> float:
        """Ask for a poll, and return when that was asked."""
        told = json.loads((self._place.root / ".sortie.db.daemon").read_text())
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE)
        connection.connect()
        try:
            asked = time.perf_counter()
            headers = {"Authorization": f"Bearer {told['token']}"}
            connection.request("POST", "/api/v1/refresh", headers=headers)
            answer = connection.getresponse()
            assert answer.status == 202, f"{answer.status}: {answer.read()!r}"
        finally:
            connection.close()
        return asked

    def stop(self) -> None:
        """End it, its agents too, and wait."""
        self.process.send_signal(signal.SIGTERM)
        try:
            code = self.process.wait(60)
        finally:
            self.process.kill()
        self._reader.join(10)
        assert code == 0, f"the daemon ended with {code}: {self._lines['unreadable'][:5]}"


class BenchmarkPlace(Place):
    """A place whose agent is a shell script of few words."""

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        self.marks = Marks(root / "marks")
        self.agent = root / "agent"
        self.variables: dict[str, str] = {}

    def environ(self, more: Mapping[str, str | None]) -> dict[str, str]:
        """Return a clean environment with ``variables``, changed by ``more``."""
        return super().environ(self.variables | dict(more))

    def write_agent(self, turn: str) -> None:
        """Write the agent: ``turn`` is what it does, in its workspace, after it has begun.

        It says at once what proves a turn, so that the script may end in an exec.
        """
        self.agent.write_text(
            "#!/bin/sh\n"
            'if [ "$1" = whoami ]; then echo "Authenticated with API key"; exit; fi\n'
            f"exec 3>{self.marks.path}\n"
            "echo begun >&3\n"
            "echo '▸ Credits: 0.00' >&2\n"
            f"{turn}\n"
        )
        self.agent.chmod(0o755)

    def configure(self, poll: float = 3600.0, **blocks: Mapping[str, object]) -> None:
        """Write the workflow; ``poll`` is in seconds.

        An issue is moved once, when its run has ended well, unless ``tracker`` says otherwise.
        """
        settings = {name: dict(block) for name, block in blocks.items()}
        tracker = {"in_progress_state": None} | settings.pop("tracker", {})
        agent = {"command": [str(self.agent)]} | settings.pop("agent", {})
        polling = {"interval_ms": round(poll * 1000)} | settings.pop("polling", {})
        self.write_workflow(PROMPT, tracker=tracker, agent=agent, polling=polling, **settings)

    def add_issues(self, names: Iterable[str], **fields: object) -> None:
        """Write Markdown issues in state Todo."""
        for name in names:
            self.add_issue(name, "", **fields)

    @contextmanager
    def daemon(self, *options: str, level: str = "info") -> Iterator[Daemon]:
        """Run a daemon while the block lasts; no process of a run may be left."""
        daemon = Daemon(self, *options, level=level)
        try:
            yield daemon
        except BaseException:
            self._kill(daemon)
            raise
        daemon.stop()
        self.require_no_process()

    @contextmanager
    def crowded_daemon(self) -> Iterator[Daemon]:
        """Run a daemon that is killed with all its runs at the end.

        A thousand of them may take longer to be ended in good order than it gives itself.
        """
        daemon = Daemon(self)
        try:
            yield daemon
        finally:
            self._kill(daemon)

    def _kill(self, daemon: Daemon) -> None:
        daemon.process.kill()
        daemon.process.wait()
        self.kill_processes()


@contextmanager
def benchmark_place() -> Iterator[BenchmarkPlace]:
    """Make a place, which goes at the end."""
    with TemporaryDirectory(prefix="sortie-benchmark-") as directory:
        yield BenchmarkPlace(Path(directory))
