"""Writes what the kept shell of a host is asked about processes, and the scripts of others."""

from __future__ import annotations

from sortie.transports import Script
from sortie.transports.ssh.scripts import Launch, assignment, assignments, text, word


def finish_body(launch: Launch, pid: int, born: int, *, marked: bool) -> list[bytes]:
    """Return the question that ends what is left of a launch at once; yes says which pids stay.

    ``pid`` and ``born`` (its start in clock ticks) are the program's, 0 where it is not known.
    """
    given = {
        "P": str(pid),
        "S": str(born),
        "M": str(launch.marker) if marked else "",
        "C": launch.cookie,
        "G": "0",
        "A": "apart",
    }
    return [*assignments(given), text("newest"), text("end_tree"), b'end\nwhole yes "$m"']


def clearing_body(marker: int, grace: float) -> list[bytes]:
    """Return the question that ends all that descends from a launch, wherever it is; yes says which
    pids were there, and behind a bar which stay."""
    given = {
        "P": "0",
        "S": "0",
        "M": str(marker),
        "C": "",
        "G": str(round(grace * 100)),
        "A": "apart",
    }
    body = b'look\nbefore=$m\nend\nwhole yes "$before | $m"'
    return [*assignments(given), text("newest"), text("end_tree"), body]


def script_body(script: Script) -> list[bytes]:
    """Return the question that runs a script; what that writes stands before the yes."""
    return [
        b"cd -P -- %s || no 'its directory cannot be entered'" % word(script.cwd),
        *(b"export " + assignment(name, value) for name, value in script.env.items()),
        b" ".join([b"set --", *map(word, script.arguments)]),
        text("script"),
        # It may be no whole command.
        b"eval " + word(script.text),
    ]
