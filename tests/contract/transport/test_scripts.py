"""Short scripts that only look."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
import trio

from sortie.model import TransportError
from sortie.transports import Script, Transport
from tests.transports.leftovers import bearers

ENV = {"PATH": os.environ["PATH"], "WORD": "a 'b'\n$c"}


def script(place: str, text: str, *arguments: str, limit: int = 1000) -> Script:
    return Script(purpose="look", text=text, arguments=arguments, cwd=place, env=ENV, limit=limit)


async def test_a_script_tells_what_it_sees(transport: Transport, place: str) -> None:
    """It has its arguments, its variables and its directory, and every byte comes back."""
    text = "printf '%s|' \"$@\" \"$WORD\"\npwd\nprintf '\\000\\001\\377\\n'"
    wanted = b"1|it's\n$x|\xff|a 'b'\n$c|" + os.fsencode(os.path.realpath(place))

    for _ in range(2):
        said = await transport.run_script(script(place, text, "1", "it's\n$x", "\udcff"))
        assert said == wanted + b"\n\x00\x01\xff\n"


async def test_the_next_script_knows_nothing_of_the_last(transport: Transport, place: str) -> None:
    """Neither its variables nor its directory nor its options."""
    await transport.run_script(script(place, "cd /; LEFT=1; export LEFT; set -euf; IFS=x; exit"))

    said = await transport.run_script(script(place, 'printf %s "${LEFT-none} "; pwd'))

    assert said == b"none " + os.fsencode(os.path.realpath(place)) + b"\n"


async def test_a_script_may_use_any_name(transport: Transport, place: str) -> None:
    """What else runs in its shell has names, too."""
    text = "for n in nonce status r again; do eval $n=1; done; IFS=012; t() { echo x; }\n"
    text += "\n".join(f"{name}() {{ t; }}" for name in ("yes", "no", "whole", "because"))

    assert await transport.run_script(script(place, f"{text}\nyes")) == b"x\n"


@pytest.mark.parametrize("text", ["echo a; exit 3", "echo a; (", "fi", "echo a; false"])
async def test_a_script_that_fails_is_told(transport: Transport, place: str, text: str) -> None:
    """Also one that is no command of a shell, and what comes after it is not harmed."""
    with pytest.raises(TransportError, match="could not look"):
        await transport.run_script(script(place, text))

    assert await transport.run_script(script(place, "echo b")) == b"b\n"


async def test_a_script_without_its_directory_fails(transport: Transport, place: str) -> None:
    """Nothing of it runs."""
    with pytest.raises(TransportError):
        await transport.run_script(script(f"{place}/none", f"echo >{place}/ran"))

    assert not Path(place, "ran").exists()


async def test_a_large_answer_comes_whole(transport: Transport, place: str) -> None:
    """Up to its limit; what says more is given up."""
    text = 'head -c "$1" /dev/zero'

    assert len(await transport.run_script(script(place, text, "1000000", limit=1000000))) == 10**6
    with pytest.raises(TransportError):
        await transport.run_script(script(place, text, "9000000"))


async def test_a_script_that_nobody_waits_for_is_ended(transport: Transport, place: str) -> None:
    """With what it has started."""
    fifo = Path(place, "fifo")
    os.mkfifo(fifo)
    word = f"1000.{os.getpid()}"
    text = f"echo >fifo; sleep {word} & echo started >told; read -r x <fifo"
    with trio.fail_after(30):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(transport.run_script, script(place, text))
            await trio.to_thread.run_sync(fifo.read_bytes)
            while not Path(place, "told").exists() or not bearers(word):
                await trio.sleep(0.01)
            nursery.cancel_scope.cancel()
        while bearers(word):
            await trio.sleep(0.01)
