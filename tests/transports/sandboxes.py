"""Sandboxes as tests have them: what they need of the machine, and what is found inside."""

from __future__ import annotations

import subprocess
import sys
from functools import cache
from pathlib import Path
from shutil import which

import pytest

from sortie.transports import Transport
from sortie.transports.walls.bubblewrap import BubblewrapTransport
from sortie.transports.walls.enclosure import Enclosure
from sortie.transports.walls.remote_bubblewrap import RemoteBubblewrapTransport

BUBBLEWRAP = "bubblewrap"
_TESTS = Path(__file__).parent.parent
_TRIAL = ("--unshare-user-try", "--unshare-pid", "--ro-bind", "/", "/", "--proc", "/proc", "true")


@cache
def _why_no_bubblewrap() -> str:
    program = which("bwrap")
    if program is None:
        return "bubblewrap is not installed"
    done = subprocess.run((program, *_TRIAL), capture_output=True, text=True, check=False)
    return done.stderr.strip() if done.returncode else ""


requires_bubblewrap = pytest.mark.skipif(
    bool(_why_no_bubblewrap()), reason=_why_no_bubblewrap() or "it works"
)


def bubblewrap(outside: Transport, **inside: object) -> BubblewrapTransport:
    """Return a transport whose programs see the programs of the tests, and what is given."""
    return BubblewrapTransport(outside, _enclosure(**inside))


def remote_bubblewrap(outside: Transport, **inside: object) -> RemoteBubblewrapTransport:
    """Return such a transport of a remote host."""
    return RemoteBubblewrapTransport(outside, _enclosure(**inside))


def _enclosure(**inside: object) -> Enclosure:
    read = (str(_TESTS), sys.prefix, sys.base_prefix)
    return Enclosure(read=read, **inside)  # type: ignore[arg-type]
