"""Writes what the kept shell of a host is asked about processes, and the scripts of others."""

from __future__ import annotations

from collections.abc import Iterable

from sortie.transports import Script
from sortie.transports.remote.launch_scripts import making_namespace
from sortie.transports.remote.namespaces import WAYS, NamespaceInit
from sortie.transports.remote.remote_launch import RemoteLaunch
from sortie.transports.remote.scripts import assignment, assignments, text, word, words
from sortie.transports.remote.unconfirmed_runs import Remains

_ENDING = [text(name) for name in ("stat_of", "clock", "newest", "end_tree")]


def finish_body(launch: RemoteLaunch, pid: int, born: int, *, marked: bool) -> list[bytes]:
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
    return [*assignments(given), *_ENDING, b'end\nwhole yes "$m"']


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
    return [*assignments(given), *_ENDING, body]


def namespaces_body(remains: Iterable[Remains], grace: float) -> list[bytes]:
    """Return the question that ends namespaces; yes says which pids were there, and behind a bar
    which stay. An init that is not known is found as long as its program lives."""
    given = [round(grace * 100)]
    for one in remains:
        init = one.init or NamespaceInit(pid=0, ticks=0)
        given += [one.pid, one.ticks, init.pid, init.ticks, one.wrappers]
    names = ("stat_of", "clock", "lives", "child_of", "innermost", "end_namespaces")
    body = b'end_namespaces %s\nwhole yes "$was | $m"' % words(map(str, given))
    return [*map(text, names), body]


def probe_body() -> list[bytes]:
    """Return the question whether namespaces can be made; see ``read_probe``."""
    tries = [
        b"try_way %s" % words((name, " ".join(way.enter), *way.make)) for name, way in WAYS.items()
    ]
    names = ("stat_of", "child_of", "await_namespace", "try_namespaces")
    return [
        *making_namespace(""),
        *map(text, names),
        *tries,
        b'whole yes "none - - - $flaws"',
    ]


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
