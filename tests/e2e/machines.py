"""Machines of daemons: network namespaces that are cut off as by a pulled cable.

What listens on this machine's loopback interface is found there at the same address, so that
servers of tests need not know of it. Requests come from the machine's own address.
"""

from __future__ import annotations

import random
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from ipaddress import ip_network

import pytest

from tests.store.postgres_server import MACHINES

_LOOPBACK = "127.0.0.1"


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """A network namespace ``name``, its address, and that of this side of its cable."""

    name: str
    address: str
    here: str

    @property
    def words(self) -> tuple[str, ...]:
        """What stands before a command that is to run on the machine."""
        return ("nsenter", f"--net=/run/netns/{self.name}")

    def cut(self) -> None:
        """Pull the cable: no packet gets through, and no connection is told."""
        _run("ip", "link", "set", f"{self.name}h", "down")

    def mend(self) -> None:
        """Plug it in again: what the kernels have kept is sent again."""
        _run("ip", "link", "set", f"{self.name}h", "up")

    def _make(self) -> None:
        here, there = f"{self.name}h", f"{self.name}f"
        _run("ip", "netns", "add", self.name)
        _run("ip", "link", "add", here, "type", "veth", "peer", "name", there)
        _run("ip", "link", "set", there, "netns", self.name)
        _run("ip", "addr", "add", f"{self.here}/30", "dev", here)
        _run("ip", "link", "set", here, "up")
        inside = ("ip", "-n", self.name)
        _run(*inside, "addr", "add", f"{self.address}/30", "dev", there)
        _run(*inside, "link", "set", there, "up")
        _run(*inside, "link", "set", "lo", "up")
        _run(*inside, "route", "add", "default", "via", self.here)
        _run("sysctl", "-qw", f"net.ipv4.conf.{here}.route_localnet=1")
        _run(*self.words, "sysctl", "-qw", "net.ipv4.conf.all.route_localnet=1")
        translate = (*self.words, "iptables", "-t", "nat", "-A")
        of_loopback = ("-d", _LOOPBACK, "-p", "tcp", "-j", "DNAT", "--to", self.here)
        _run(*translate, "OUTPUT", *of_loopback)
        _run(*translate, "POSTROUTING", "-o", there, "-j", "SNAT", "--to", self.address)
        _run("iptables", "-w", "-t", "nat", "-A", *self._arriving)

    @property
    def _arriving(self) -> Sequence[str]:
        """The rule by which what the machine sends reaches the loopback interface here."""
        of = ("-i", f"{self.name}h", "-p", "tcp", "-d", self.here)
        return ("PREROUTING", *of, "-j", "DNAT", "--to", _LOOPBACK)

    def _remove(self) -> None:
        for words in (
            ("iptables", "-w", "-t", "nat", "-D", *self._arriving),
            ("ip", "link", "del", f"{self.name}h"),
            ("ip", "netns", "del", self.name),
        ):
            with suppress(subprocess.CalledProcessError):
                _run(*words)


@contextmanager
def machine() -> Iterator[Machine]:
    """Give a machine for the block; skips the test, visibly, where none can be made."""
    for program in ("ip", "iptables", "nsenter", "sysctl"):
        if shutil.which(program) is None:
            pytest.skip(f"there is no program {program} to make a network namespace with")
    number = random.SystemRandom().randrange(1 << 14)
    first = ip_network(MACHINES).network_address + 4 * number
    made = Machine(name=f"sm{number:x}", address=str(first + 2), here=str(first + 1))
    try:
        try:
            made._make()
        except subprocess.CalledProcessError as exc:
            pytest.skip(f"no network namespace can be made here: {exc.stderr.strip()}")
        yield made
    finally:
        made._remove()


def _run(*words: str) -> None:
    subprocess.run(words, check=True, capture_output=True, text=True)
