"""The limit of open files is the daemon's own; a few are kept back; none is lost."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from pathlib import Path

import pytest

from sortie.resources.descriptors import own, released_reserve
from tests.descriptors import no_descriptor_stays_open
from tests.resources.scarcity import descriptors_left, own_reserve

PROGRAM = """
import os, resource, sys, trio
from sortie.resources.descriptors import raise_limit
from sortie.transports import Command
from sortie.transports.local import LocalTransport

async def limit_of_child():
    env = {"PATH": os.environ["PATH"]}
    command = Command(argv=("sh", "-c", "ulimit -Sn; ulimit -Hn"), cwd="/", env=env)
    async with LocalTransport(os.environ["PATH"]).process(command) as process:
        return b"".join([c async for _, c in process.output()]).decode().split()

async def main():
    print(raise_limit(), resource.getrlimit(resource.RLIMIT_NOFILE)[0])
    opened = [os.open(os.devnull, os.O_RDONLY) for _ in range(int(sys.argv[1]))]
    print(*await limit_of_child())
    print(resource.getrlimit(resource.RLIMIT_NOFILE)[0])

trio.run(main)
"""


def _said(files: int) -> list[str]:
    def few() -> None:
        resource.setrlimit(resource.RLIMIT_NOFILE, (256, 512))

    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(files)],
        preexec_fn=few,
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    return done.stdout.splitlines()


def test_the_daemon_may_open_all_that_it_may_and_its_children_what_is_usual() -> None:
    """Its soft limit is its hard one; what it starts begins with the limit it began with."""
    assert _said(0) == ["512 512", "256 512", "512"]


def test_many_open_files_do_not_keep_programs_from_starting() -> None:
    """The limit is not lowered below what is open."""
    first, _, last = _said(300)

    assert first == "512 512"
    assert last == "512"


def test_the_reserve_is_there_when_nothing_else_is() -> None:
    """Who has it released can open files though the limit is reached; then it is held again."""
    with own_reserve(), descriptors_left(1):
        held = os.open(os.devnull, os.O_RDONLY)
        with released_reserve():
            os.close(os.open(os.devnull, os.O_RDONLY))
        with pytest.raises(OSError, match="Too many open files"):
            os.open(os.devnull, os.O_RDONLY)
        os.close(held)


def test_a_reserve_that_others_took_is_held_again_when_there_is_room() -> None:
    """What was released and taken meanwhile is not lost for the next shortage."""
    with own_reserve():
        with descriptors_left(0), released_reserve():
            pass  # nobody gets a descriptor now, the reserve neither
        with released_reserve():
            pass
        with descriptors_left(1):
            held = os.open(os.devnull, os.O_RDONLY)
            with released_reserve():
                os.close(os.open(os.devnull, os.O_RDONLY))
            os.close(held)


def test_a_descriptor_of_which_no_file_can_be_made_is_closed(tmp_path: Path) -> None:
    """A directory is opened and refused, and leaves nothing behind."""
    with no_descriptor_stays_open():
        for _ in range(5):
            with pytest.raises(IsADirectoryError):
                own(os.open(tmp_path, os.O_RDONLY), "rb")
