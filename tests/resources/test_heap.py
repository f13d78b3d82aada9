"""All threads of a process use one heap where it has asked for that."""

from __future__ import annotations

import platform
import subprocess
import sys

import pytest

pytestmark = pytest.mark.skipif(
    platform.libc_ver()[0] != "glibc", reason="only glibc gives threads heaps of their own"
)

PROGRAM = """
import ctypes, sys, threading
from sortie.resources.heap import share_heap

print(share_heap() if sys.argv[1] == "shared" else False)
threads = [threading.Thread(target=lambda: [b"x" * 1000 for _ in range(100)]) for _ in range(3)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
ctypes.CDLL(None).malloc_stats()
"""


def heaps(way: str) -> tuple[str, int]:
    """Return what a program was told that asks for one heap or not, and how many it has."""
    ran = subprocess.run(
        [sys.executable, "-c", PROGRAM, way], capture_output=True, text=True, timeout=60, check=True
    )
    return ran.stdout.strip(), ran.stderr.count("Arena ")


def test_threads_share_a_heap() -> None:
    """Without it each thread has one of its own, so that this can be told apart at all."""
    told, count = heaps("shared")

    assert (told, count) == ("True", 1)
    assert heaps("own")[1] > 1
