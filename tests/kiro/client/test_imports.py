"""What a program takes in that uses the client."""

from __future__ import annotations

import subprocess
import sys

import pytest

import sortie.kiro
import sortie.kiro.client
from tests.kiro.client.rig import WAYS, Rig

_USED = """
import sys, threading
from sortie.kiro import KiroAgentOptions, query, query_sync
options = KiroAgentOptions(cwd={cwd!r}, env={env!r})
async def main():
    return [message async for message in query(prompt="Hello", options=options)]
way = {way!r}
if way == "sync":
    said = query_sync(prompt="Hello", options=options)
elif way == "trio":
    import trio
    said = trio.run(main)
else:
    import asyncio
    said = asyncio.run(main())
assert said[-1].credits == 0.05, said
assert threading.active_count() == 1, threading.enumerate()
"""
_FOREIGN = """
print(sorted({{name.partition(".")[0] for name in sys.modules}} & {foreign!r}))
"""

HEAVY = {"starlette", "asyncssh", "pydantic", "structlog", "trio", "rich", "typer", "jinja2"}


def printed(code: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_the_package_alone_takes_in_nothing() -> None:
    """``import sortie.kiro`` imports neither the client nor any library."""
    foreign = {*HEAVY, "anyio", "psutil", "asyncio", "dataclasses", "typing"}

    assert printed("import sys, sortie.kiro" + _FOREIGN.format(foreign=foreign)) == "[]"


@pytest.mark.parametrize("way", WAYS)
def test_using_it_takes_in_none_of_the_daemon(rig: Rig, way: str) -> None:
    """A prompt needs no library of the daemon, starts no thread and leaves no warning."""
    foreign = HEAVY - ({"trio"} if way == "trio" else set())
    if way == "sync":
        foreign = foreign | {"asyncio"}

    code = _USED.format(cwd=str(rig.workspace), env=rig.env, way=way)

    assert printed(code + _FOREIGN.format(foreign=foreign)) == "[]"


def test_both_packages_have_the_same_names() -> None:
    """What the client exports is at hand as ``sortie.kiro``, and nothing else is."""
    assert sortie.kiro.__all__ == sortie.kiro.client.__all__
    for name in sortie.kiro.__all__:
        assert getattr(sortie.kiro, name) is getattr(sortie.kiro.client, name)
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        _ = sortie.kiro.nothing  # type: ignore[attr-defined]
