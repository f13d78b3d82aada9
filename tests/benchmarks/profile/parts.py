"""Parts of the program, as ``docs/architecture.md`` names them, and samples of stacks in them.

A sample belongs to the innermost of its frames that has a part: what a library does that has none,
such as ``json``, is given to who asked for it. This explains more than the time that each line
takes by itself, of which half to four fifths is in libraries that all parts use.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

THREADS, STARTS, TRIO = "starts and wake-ups of threads", "starts of programs", "trio itself"
OTHER = "other libraries"
UNREADABLE = "not read in time"

_PARTS = (
    ("sortie/resources/threads.py", THREADS),
    ("sortie/store/database_thread.py", THREADS),
    ("sortie/transports/local/spawn.py", STARTS),
    ("sortie/telemetry/log/", "telemetry: log lines"),
    ("sortie/telemetry/transcripts/", "telemetry: transcripts"),
    ("sortie/telemetry/", "telemetry: facts, metrics, live runs"),
    ("sortie/worker/", "worker"),
    ("sortie/workflow/", "worker: prompts"),
    ("sortie/workspaces/", "worker: workspaces and hooks"),
    ("sortie/orchestrator/", "orchestrator"),
    ("sortie/scheduler/", "scheduler"),
    ("sortie/trackers/", "tracker"),
    ("sortie/store/", "store"),
    ("sortie/transports/", "transports"),
    ("sortie/agents/", "agents"),
    ("sortie/acp/", "agents"),
    ("sortie/kiro/", "agents: Kiro's own records"),
    ("sortie/web/", "web"),
    ("sortie/daemon/", "daemon"),
    ("sortie/", "nouns and helpers (model, lines, resources)"),
    ("trio/_core/_thread_cache.py", THREADS),
    ("trio/_core/_entry_queue.py", THREADS),
    ("trio/_core/_wakeup_socketpair.py", THREADS),
    ("trio/_threads.py", THREADS),
    ("threading.py", THREADS),
    ("concurrent/futures/", THREADS),
    ("subprocess.py", STARTS),
    ("trio/", TRIO),
    ("outcome/", TRIO),
    ("<attrs generated methods trio", TRIO),
    ("<attrs generated methods outcome", TRIO),
    ("hypercorn/", "web"),
    ("starlette/", "web"),
    ("asyncssh/", "SSH (asyncssh, asyncio)"),
    ("asyncio/", "SSH (asyncssh, asyncio)"),
    ("cryptography/", "SSH (asyncssh, asyncio)"),
)
"""Where files of frames belong, the first that fits."""

_WAITS_FOR_PROGRAM = ("Popen._execute_child", "subprocess.py")
"""The call that waits, with the lock, until a program that was forked is executed."""

_OURS = "sortie/"
_FRAME = re.compile(r"(?P<function>.*) \((?P<file>.*?)(?::\d+)?\)")
_THREAD = re.compile(r"thread \((?P<tid>\w+)\)(?:: (?P<name>.*))?")


@dataclass(frozen=True, slots=True, kw_only=True)
class Stack:
    """Frames of one thread, as function and file, outermost first, and how often they were seen."""

    tid: int
    thread: str
    frames: tuple[tuple[str, str], ...]
    count: int

    @property
    def waits_for_program(self) -> bool:
        """Whether the processor has nothing to do: a new program is not executed yet."""
        return self.frames[-1:] == (_WAITS_FOR_PROGRAM,)


@dataclass(slots=True)
class Folded:
    """Samples of who holds the interpreter's lock: by part, how many of them in a part's own lines,
    by innermost function of ours, by thread, and ``waiting`` for a program, with the lock and
    without the processor."""

    parts: Counter[str] = field(default_factory=Counter)
    own: Counter[str] = field(default_factory=Counter)
    functions: Counter[str] = field(default_factory=Counter)
    threads: Counter[int] = field(default_factory=Counter)
    names: dict[int, str] = field(default_factory=dict)
    waiting: int = 0

    @property
    def total(self) -> int:
        """All that took processor time."""
        return self.parts.total()


def read_stacks(raw: str) -> Iterator[Stack]:
    """Yield the stacks of ``py-spy record --format raw --threads``."""
    for line in raw.splitlines():
        stack, _, count = line.rpartition(" ")
        thread, *frames = stack.split(";")
        told = _THREAD.fullmatch(thread)
        if told is not None:
            found = [_FRAME.fullmatch(frame) for frame in frames]
            yield Stack(
                tid=int(told["tid"], 0),
                thread=told["name"] or "",
                frames=tuple((one["function"], one["file"]) for one in found if one is not None),
                count=int(count),
            )


def part_of(stack: Stack) -> str:
    """Return the part to which a sample belongs."""
    for _, file in reversed(stack.frames):
        for prefix, part in _PARTS:
            if file.startswith(prefix):
                return part
    return OTHER


def fold(stacks: Iterable[Stack], unreadable: int = 0) -> Folded:
    """Put samples into their parts; those that could not be read count, as somebody went on."""
    folded = Folded()
    for stack in stacks:
        if stack.waits_for_program:
            folded.waiting += stack.count
            continue
        part = part_of(stack)
        folded.parts[part] += stack.count
        folded.threads[stack.tid] += stack.count
        folded.names.setdefault(stack.tid, stack.thread)
        ours = [frame for frame in stack.frames if frame[1].startswith(_OURS)]
        if ours:
            folded.functions[f"{ours[-1][0]} ({ours[-1][1]})"] += stack.count
        if ours and ours[-1] == stack.frames[-1]:
            folded.own[part] += stack.count
    if unreadable:
        folded.parts[UNREADABLE] += unreadable
    return folded


_KINDS = (
    ("MainThread", "the loop's thread"),
    ("sortie-store", "the database's thread"),
    ("sortie-ssh", "the thread that speaks SSH"),
    ("cgroups", "the thread that removes cgroups"),
)


def outside(folded: Folded, rate: int, threads: Mapping[int, float]) -> dict[str, float]:
    """Return the seconds that threads ran without the interpreter's lock, by kinds of threads:
    their clocks, less the samples of who holds it."""
    found: dict[str, float] = {}
    for tid, clock in threads.items():
        name = folded.names.get(tid, "")
        kinds = [kind for prefix, kind in _KINDS if name.startswith(prefix)]
        kind = kinds[0] if kinds else "threads for what may wait"
        found[kind] = found.get(kind, 0.0) + max(0.0, clock - folded.threads[tid] / rate)
    return found
