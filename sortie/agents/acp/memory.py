"""How much memory an agent's process tree takes, wherever it lives."""

from __future__ import annotations

from collections.abc import Mapping

import trio

from sortie.model import TransportError
from sortie.transports import Command, Transport

_LIMIT = 5.0
_OUTPUT_LIMIT = 4 * 1024 * 1024
_PS = ("ps", "-A", "-o", "pid=,ppid=,rss=")


async def resident_mb(
    transport: Transport, pid: int, cwd: str, env: Mapping[str, str]
) -> float | None:
    """Return the resident memory of a process and all that descends from it, in MiB.

    None where it cannot be told: no ``ps``, another one, no answer within some seconds.
    """
    command = Command(argv=_PS, cwd=cwd, env=env, grace=1.0)
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
    """Return the sum over a tree in a table of pid, parent's pid and KiB; None without its root."""
    sizes: dict[int, int] = {}
    children: dict[int, list[int]] = {}
    for line in table.splitlines():
        words = line.split()
        if len(words) == 3 and all(word.isascii() and word.isdigit() for word in words):
            child, parent, size = map(int, words)
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
