"""How much memory an agent's process tree takes, on this machine or on a host."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

import trio

from sortie.model import TransportError
from sortie.transports import Command, Transport

_LIMIT = 5.0
_OUTPUT_LIMIT = 4 * 1024 * 1024

# A bare Debian has no ps. Pages of memory stand in /proc/PID/stat then, below the size of a page.
_SCRIPT = """\
ps -A -o pid=,ppid=,rss= 2>/dev/null && exit
getconf PAGESIZE && cat /proc/[0-9]*/stat 2>/dev/null
"""
_NUMBER = re.compile(r"[0-9]{1,9}")
_PS = re.compile(r"\s*([0-9]{1,18})\s+([0-9]{1,18})\s+([0-9]{1,18})\s*$")
_STAT = re.compile(r"([0-9]{1,18}) \(.*\) \S ([0-9]{1,18})(?: \S+){19} ([0-9]{1,18}) ")


async def resident_mb(
    transport: Transport, pid: int, cwd: str, env: Mapping[str, str]
) -> float | None:
    """Return the resident memory of a process and all that descends from it, in MiB.

    None where it cannot be told: neither ``ps`` nor ``/proc``, no answer within some seconds.
    """
    command = Command(argv=("/bin/sh", "-c", _SCRIPT), cwd=cwd, env=env, grace=1.0)
    output = bytearray()
    with trio.move_on_after(_LIMIT) as limit:
        try:
            async with transport.process(command) as process:
                async for source, chunk in process.output():
                    if source == 1:
                        output += chunk[: _OUTPUT_LIMIT - len(output)]
                await process.wait()
        except TransportError:
            return None
    return None if limit.cancelled_caught else tree_mb(output.decode(errors="replace"), pid)


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
