"""Hosts that do not stop to talk: whatever they say, little of it is kept, and none for ever."""

from __future__ import annotations

import os
import sys
import tracemalloc
import uuid
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path

import pytest
import trio

from sortie.model import TEXT_LIMIT, RunId, TransportError
from sortie.transports import Command
from sortie.transports.remote import process_table, remote_script
from sortie.transports.remote.launch import Bounds
from sortie.transports.remote.transport import ShellTransport
from tests.transports.ssh.pipes import Logins

PROGRAM = Path(__file__).with_name("logins") / "hostile.py"
PATIENCE = 60.0
KEPT = 12 * 2**20
"""Bytes of memory; a second of such a flood is a hundred times as many."""

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the host's /proc is looked at")

Use = Callable[[ShellTransport], Awaitable[object]]


async def start(transport: ShellTransport) -> None:
    env = {"PATH": os.environ["PATH"], "SORTIE_RUN_ID": str(uuid.uuid4())}
    async with transport.process(Command(argv=("true",), cwd="/", env=env, grace=0.0)):
        pass


async def sweep(transport: ShellTransport) -> None:
    await transport.sweep([RunId("run")], grace=0.0)


async def look(transport: ShellTransport) -> None:
    await transport.files.contained("/", "/tmp")


async def make(transport: ShellTransport) -> None:
    await transport.files.make_directory("/tmp", "never-made")


async def read(transport: ShellTransport) -> None:
    await transport.files.read_file("/tmp", "file", 100)


async def end(transport: ShellTransport) -> None:
    await transport.files.remove_directory("/tmp", "never-there")


ANSWERS = {
    "what follows a yes": r"\1%s here\n\1%s yes there\n",
    "the line of a yes": r"\1%s here\n\1%s yes ",
    "the line of a no": r"\1%s here\n\1%s no ",
    "lines of no": r"\1%s here\n|\1%s no because\n*",
    "words": r"|\1%s here\n*",
    "no word": "welcome",
    "no word on stderr": "2:welcome",
    "noise behind the first word": r"\1%s here\n",
}


def often(sayings: Mapping[str, str], *names: str) -> list[object]:
    """Leave all but these to those who ask for all."""
    return [
        pytest.param(saying, id=name, marks=() if name in names else pytest.mark.full)
        for name, saying in sayings.items()
    ]


async def flooded(tmp_path: Path, saying: str, use: Use) -> tuple[str, int]:
    """Return what is said of a host that talks without end, and how much memory it took."""
    logins = Logins(tmp_path, (sys.executable, str(PROGRAM), saying))
    bounds = Bounds(handshake=1.0, start=1.0)
    tracemalloc.start()
    try:
        with trio.fail_after(PATIENCE), pytest.raises(TransportError) as caught:
            await use(ShellTransport("h", logins.connections, bounds=bounds))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    await logins.quiet()
    return str(caught.value), peak


@pytest.mark.parametrize("saying", often(ANSWERS, "words", "no word", "lines of no"))
async def test_an_answer_without_end_is_none(
    tmp_path: Path, saying: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It ends in an error of a few lines, and fills no memory."""
    monkeypatch.setattr(remote_script, "_FLOOD", 2**20)

    text, peak = await flooded(tmp_path, saying, look)

    assert len(text) <= TEXT_LIMIT
    assert peak < KEPT


@pytest.mark.parametrize("use", [make, read, end])
async def test_what_follows_a_yes_has_a_limit(tmp_path: Path, use: Use) -> None:
    """A path is no longer than a path, a file no longer than what was asked for."""
    text, peak = await flooded(tmp_path, ANSWERS["what follows a yes"], use)

    assert "did not stop to talk" in text
    assert peak < KEPT


WORDS = {
    "the first word": r"\1%s here ",
    "a word": r"\1%s missing ",
    "words": r"|\1%s send\n*",
    "no word": "welcome",
    "no word on stderr": "2:welcome",
    "the last word": r"2:\1%s gone ",
}


@pytest.mark.parametrize("saying", often(WORDS, "words", "no word on stderr"))
async def test_a_start_without_end_is_none(tmp_path: Path, saying: str) -> None:
    """A host that is to start a program and says other things is believed none of them."""
    text, peak = await flooded(tmp_path, saying, start)

    assert len(text) <= TEXT_LIMIT
    assert peak < KEPT


PROCESSES = {
    "processes": r"\1%s here\n\1%s ready 1 boot\n",
    "the first word": r"\1%s ready ",
    "words": r"|\1%s ready 1 boot\n*",
    "no word": "welcome",
}


@pytest.mark.parametrize("saying", often(PROCESSES, "processes", "words"))
async def test_a_list_of_processes_without_end_is_none(
    tmp_path: Path, saying: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As many as a host can have are read, and no more."""
    monkeypatch.setattr(process_table, "_TABLE_LIMIT", 2**20)

    text, peak = await flooded(tmp_path, saying, sweep)

    assert len(text) <= TEXT_LIMIT
    assert peak < KEPT
