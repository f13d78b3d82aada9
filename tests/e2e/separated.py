"""A remote host behind a network link of its own that can be cut, as by a pulled cable."""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
import threading
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import pytest

from tests.e2e.remote import Fleet

_CLONE_NEWNET = 0x40000000
_HERE, _THERE = "10.213.77.1", "10.213.77.2"


class Link:
    """A pair of virtual devices: ``<name>h`` is on this side, ``<name>f`` in a network namespace
    of the same name."""

    def __init__(self) -> None:
        self.name = f"st{uuid.uuid4().hex[:8]}"

    def make(self) -> None:
        """Make namespace, devices and addresses. Raises CalledProcessError where none may be."""
        here, there = f"{self.name}h", f"{self.name}f"
        _ip("netns", "add", self.name)
        _ip("link", "add", here, "type", "veth", "peer", "name", there)
        _ip("link", "set", there, "netns", self.name)
        _ip("addr", "add", f"{_HERE}/30", "dev", here)
        _ip("link", "set", here, "up")
        for words in (("addr", "add", f"{_THERE}/30", "dev", there), ("link", "set", "lo", "up")):
            _ip("-n", self.name, *words)
        self.mend()

    def remove(self) -> None:
        """Undo what was made."""
        for words in (("link", "del", f"{self.name}h"), ("netns", "del", self.name)):
            with suppress(subprocess.CalledProcessError):
                _ip(*words)

    def cut(self) -> None:
        """Let no packet through; neither side is told."""
        _ip("-n", self.name, "link", "set", f"{self.name}f", "down")

    def mend(self) -> None:
        """Let packets through again."""
        _ip("-n", self.name, "link", "set", f"{self.name}f", "up")


@contextmanager
def separated(fleet: Fleet, name: str) -> Iterator[Link]:
    """Have a host that is reached over a link; skips the test where none can be made."""
    if shutil.which("ip") is None:
        pytest.skip("there is no program ip to make a network namespace with")
    link = Link()
    try:
        try:
            link.make()
        except subprocess.CalledProcessError as exc:
            pytest.skip(f"no network namespace can be made here: {exc.stderr.strip()}")
        with _working_in(link):
            fleet.add(name, ListenAddress=_THERE)
        fleet.place_at(name, _THERE)
        yield link
    finally:
        link.remove()


@contextmanager
def _working_in(link: Link) -> Iterator[None]:
    """Have this thread, and what it starts, in the namespace of a link."""
    with open(f"/proc/self/task/{threading.get_native_id()}/ns/net") as own:
        with open(f"/run/netns/{link.name}") as other:
            _enter(other.fileno())
        try:
            yield
        finally:
            _enter(own.fileno())


def _enter(namespace: int) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.setns(namespace, _CLONE_NEWNET) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


def _ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True, capture_output=True, text=True)
