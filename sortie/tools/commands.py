"""Calls by commands of a shell, for agents without MCP: each call is a client of its own.

Such a client says ``call NAME`` in the line behind its token, and then the arguments as JSON, in
one line or several. It is told whether the call was refused, as 0 or 1 in a line, and the answer.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Sequence
from shlex import quote

from sortie.model.tools import ToolName
from sortie.tools.arguments import DESCRIBED
from sortie.tools.calls import ToolAnswer, ToolCalls
from sortie.tools.client_lines import LINE_LIMIT, ClientLines, ClientLineTooLong

_CALL = b"call "
_KINDS = {"string": '"TEXT"', "array": '["TEXT"]', "integer": "NUMBER"}


def is_command(line: bytes) -> bool:
    """Tell whether a client that begins with a line is a command; no message of MCP begins so."""
    return line.startswith(_CALL)


async def serve_command(
    lines: ClientLines, send: Callable[[bytes], Awaitable[None]], calls: ToolCalls
) -> None:
    """Answer the call of a client whose next line is a command.

    Raises ClientLineTooLong, TransportError, and what ``send`` raises.
    """
    first = await lines.next() or b""
    name = first.removeprefix(_CALL).decode(errors="replace").strip()
    arguments = bytearray()
    while (line := await lines.next()) is not None:
        arguments += line + b"\n"
        if len(arguments) > LINE_LIMIT:
            raise ClientLineTooLong
    answer = await calls.call(name, bytes(arguments)) if name else _listed(calls.names)
    await send(f"{int(answer.is_error)}\n{answer.text}\n".encode(errors="replace"))


def guide(script: str, names: Sequence[ToolName]) -> str:
    """Return what an agent is told so that it calls tools by a script."""
    tools = [f"- {_usage(name)}: {DESCRIBED[name].description}" for name in names]
    command = f"/bin/sh {quote(script)}"
    return "\n".join(
        [
            "You have tools of Sortie, which runs you on this issue. Call each by a shell command"
            " with its name and, where it takes arguments, one JSON object in single quotes; write"
            " an apostrophe in it as \\u0027 and a line break as \\n:",
            f'  {command} NAME \'{{"ARGUMENT": "VALUE"}}\'',
            "The command prints the answer, and its exit status is 1 where the call was refused."
            " Without a name it prints all that is known of the arguments. These are the tools:",
            *tools,
        ]
    )


def _usage(name: ToolName) -> str:
    """Return a tool's name with a sample of its arguments."""
    schema = DESCRIBED[name].schema
    samples = [f'"{key}": {_sample(value)}' for key, value in schema["properties"].items()]
    if not samples:
        return name.value
    spare = [key for key in schema["properties"] if key not in schema["required"]]
    note = f" ({', '.join(spare)} may be left out)" if spare else ""
    return f"{name.value} {{{', '.join(samples)}}}{note}"


def _sample(schema: dict[str, object]) -> str:
    choices = schema.get("enum")
    if isinstance(choices, list):
        return " or ".join(json.dumps(choice) for choice in choices)
    return _KINDS.get(str(schema.get("type")), "VALUE")


def _listed(names: Sequence[ToolName]) -> ToolAnswer:
    tools = [
        {
            "name": name.value,
            "description": DESCRIBED[name].description,
            "arguments": DESCRIBED[name].schema,
        }
        for name in names
    ]
    return ToolAnswer(json.dumps(tools, ensure_ascii=False, indent=1))
