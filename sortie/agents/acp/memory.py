"""How much memory an agent's process tree takes, on this machine or on a host."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import suppress

import psutil
import trio

from sortie.model import LOCAL, TransportError
from sortie.resources import run_in_thread
from sortie.transports import Script, Transport

_LIMIT = 5.0
_OUTPUT_LIMIT = 4 * 1024 * 1024

# A bare Debian has no ps. Pages of memory stand in /proc/PID/stat then, below the size of a page.
# A process that ends meanwhile makes cat fail.
_SCRIPT = """\
ps -A -o pid=,ppid=,rss= 2>/dev/null || {
  getconf PAGESIZE && cat /proc/[0-9]*/stat 2>/dev/null || :
}
"""
_NUMBER = re.compile(r"[0-9]{1,9}")
_PS = re.compile(r"\s*([0-9]{1,18})\s+([0-9]{1,18})\s+([0-9]{1,18})\s*$")
_STAT = re.compile(r"([0-9]{1,18}) \(.*\) \S ([0-9]{1,18})(?: \S+){19} ([0-9]{1,18}) ")


async def resident_mb(
    transport: Transport, pid: int, cwd: str, env: Mapping[str, str]
) -> float | None:
    """Return the resident memory of a process and all that descends from it, in MiB.

    On this machine the daemon looks by itself: a program would see its own PID namespace alone.
    None where it cannot be told: the process is gone, neither ``ps`` nor ``/proc``, no answer of a
    host within some seconds.
    """
    if transport.host == LOCAL:
        return await run_in_thread(_resident_here, pid)
    script = Script(
        purpose="look at the memory of processes",
        text=_SCRIPT,
        cwd=cwd,
        env=env,
        limit=_OUTPUT_LIMIT,
    )
    with trio.move_on_after(_LIMIT):
        try:
            output = await transport.run_script(script)
        except TransportError:
            return None
        return tree_mb(output.decode(errors="replace"), pid)
    return None


def _resident_here(pid: int) -> float | None:
    try:
        root = psutil.Process(pid)
        tree = [root, *root.children(recursive=True)]
    except psutil.NoSuchProcess:
        return None
    size = 0
    for process in tree:
        with suppress(psutil.Error):  # it has ended meanwhile
            size += process.memory_info().rss
    return size / (1 << 20)


def tree_mb(table: str, pid: int) -> float | None:
    """Return the sum over a tree of processes; None without its root.

    The table is what ``ps`` prints, pid, parent's pid and KiB a line; or the size of a page on a
    line of its own and then lines of ``/proc/PID/stat`` (proc(5): pid, name in parentheses,
    state, parent's pid, ..., 24th: pages).
    """
    sizes: dict[int, float] = {}
    children: dict[int, list[int]] = {}
    for child, parent, size in _processes(table):
        sizes[child] = size
        children.setdefault(parent, []).append(child)
    if pid not in sizes:
        return None
    tree, seen = [pid], {pid}
    for each in tree:  # grows while it is walked
        more = [child for child in children.get(each, []) if child not in seen]
        tree += more
        seen.update(more)
    return sum(sizes[each] for each in tree) / 1024


def _processes(table: str) -> Iterator[tuple[int, int, float]]:
    """Yield pid, parent's pid and KiB of each line that can be read."""
    lines = table.splitlines()
    page = int(lines[0]) if lines and _NUMBER.fullmatch(lines[0]) else 0
    pattern, unit = (_STAT, page / 1024) if page else (_PS, 1)
    for match in filter(None, map(pattern.match, lines)):
        pid, parent, size = map(int, match.groups())
        yield pid, parent, size * unit
