"""Ask a program something that it answers at once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import trio

from sortie.model import ProgramNotFound, TransportError
from sortie.transports import Command, Transport

PATIENCE = 10.0
"""Seconds for an answer."""

_LIMIT = 64 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Answered:
    """How a program exited, and what it wrote to stdout, without the space around it."""

    status: int | None
    said: str


async def answer_of(
    transport: Transport, environ: Mapping[str, str], *argv: str
) -> Answered | None:
    """Return what a program says, None where there is no such program, or it says nothing in time.

    Raises TransportError where its host cannot be asked.
    """
    output = bytearray()
    try:
        program = await transport.resolve_program(argv[0], environ.get("PATH"))
    except ProgramNotFound:
        return None
    command = Command(argv=(program, *argv[1:]), cwd="/", env=environ, grace=0.5)
    with trio.move_on_after(PATIENCE):
        async with transport.process(command) as process:
            async for stream, chunk in process.output():
                if stream == 1:
                    output += chunk[: _LIMIT - len(output)]
            end = await process.wait()
        return Answered(status=end.status, said=output.decode(errors="replace").strip())
    raise TransportError(f"{argv[0]} said nothing within {PATIENCE:g} s on {transport.host}")
