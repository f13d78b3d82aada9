"""Writes the scripts that run a program behind a supervisor, which outlives the link to it."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from math import ceil

from msgspec import Struct

from sortie.transports import Stdin
from sortie.transports.remote.fence import launch_lines, start_lines
from sortie.transports.remote.launch_scripts import (
    ON_STDIN,
    become_lines,
    given_to_launch,
    making_namespace,
    watch_function,
)
from sortie.transports.remote.remote_launch import RemoteLaunch
from sortie.transports.remote.scripts import (
    assignment,
    assignments,
    block,
    text,
    texts,
    word,
)

KEPT = 8 << 20
"""Bytes of each stream that a host keeps for a link that is down; then the program waits."""

_ADOPTING = 1001
"""The number of an attachment for another daemon, which is larger than those of the one before."""

_WHOLE = 4
"""Times ``kept`` bytes from the beginning on stay on the host, acknowledged or not, where another
daemon may go on with the program."""

_FIND_SETSID = b'given=$found\nfind_program setsid "$PATH"\nsetsid=$found found=$given'
_LIVING = ("stat_of", "lives", "child_of")


class SupervisedLaunch(Struct, frozen=True, kw_only=True):
    """A launch whose program lives for ``reattach`` seconds without a link.

    The lease of ``launch`` holds until the program has started. ``kept`` is how many bytes of each
    stream wait at most for being acknowledged.
    """

    launch: RemoteLaunch
    reattach: float
    kept: int = KEPT

    @property
    def id(self) -> str:
        """What the supervisor's directory on the host is called after."""
        return supervisor_id(self.launch.nonce)


def supervisor_id(nonce: str) -> str:
    """Return what the supervisor of a launch is known by on the host."""
    return hashlib.sha256(f"place {nonce}".encode()).hexdigest()[:32]


def opening_script(supervised: SupervisedLaunch, *, whole: bool = False) -> bytes:
    """Return the script that begins a supervisor, and is its first attachment.

    The script of the supervisor is in it where it is ``whole``, and else comes behind it.
    """
    nonce = supervised.launch.nonce
    supervisor = b"supervisor() { exec setsid /bin/sh <&3 3<&-; }"
    if whole:
        # Nobody can have written the nonce into an argument.
        script = supervisor_script(supervised, apart=True)
        supervisor = b"supervisor() {\nexec setsid /bin/sh <<'%s'\n%s%s\n}" % (
            nonce.encode(),
            script,
            nonce.encode(),
        )
    return _attachment(supervised, nonce, 1, (0, 0), supervisor, text("start_supervisor"))


def attaching_script(
    supervised: SupervisedLaunch, nonce: str, number: int, positions: tuple[int, int]
) -> bytes:
    """Return the script of a further attachment: how many bytes of stdout and of stderr are known,
    and a number that is larger than all before."""
    return _attachment(supervised, nonce, number, positions, text("resume"))


def adopting_script(supervised: SupervisedLaunch, nonce: str) -> bytes:
    """Return the script of an attachment that begins with the first byte of the output, for another
    daemon than the one that has begun the supervisor; it says its number."""
    lines = texts("adoptable", "adopt")
    return _attachment(supervised, nonce, _ADOPTING, (0, 0), *lines, adopting=True)


def adoptable_body(ids: Iterable[str]) -> list[bytes]:
    """Return the question which of some supervisors have a program that another daemon can go on
    with; yes says their ids."""
    given = [assignment("ids", " ".join(ids)), assignment("id", "")]
    return [*given, *texts("stat_of", "lives", "place", "adoptable", "find_adoptable")]


def _attachment(
    supervised: SupervisedLaunch,
    nonce: str,
    number: int,
    positions: tuple[int, int],
    *lines: bytes,
    adopting: bool = False,
) -> bytes:
    fence = supervised.launch.fence
    given = {
        **({} if fence is None else fence.given),
        "nonce": nonce,
        "id": supervised.id,
        "adopting": "yes" if adopting else "",
        "K": str(number),
        "at1": str(positions[0]),
        "at2": str(positions[1]),
    }
    leader = launch_lines(fence)
    return block(*assignments(given), *texts(*_LIVING, "place", "attach"), *leader, *lines)


def supervisor_script(supervised: SupervisedLaunch, *, apart: bool = False) -> bytes:
    """Return the script that becomes the supervisor, and the parent of the program.

    It comes on the link itself, or ``apart`` from it, which is fd 3 then.
    """
    launch = supervised.launch
    piped = launch.command.stdin is Stdin.PIPE
    given = {
        **given_to_launch(launch),
        "piped": "",  # the stdin is the supervisor's
        "fed": "yes" if piped else "",
        "id": supervised.id,
        "most": str(supervised.kept),
        "whole": str(_WHOLE * supervised.kept) if launch.command.on_record else "",
        "setsid": "",
    }
    lease = str(max(1, ceil(supervised.reattach)))  # a shell counts in whole numbers
    prelude = assignments({"N": launch.nonce, "id": supervised.id, "R": lease})
    if launch.namespaces is None:
        ending = texts("clock", "newest", "end_tree", "left_nothing")
        watchdog = [*texts(*_LIVING), *ending, *texts("supervised_lease", "watchdog")]
        reading, watched = [], "supervised_watched"
    else:
        watchdog = [
            *making_namespace(launch.namespaces.idle),
            *texts(*_LIVING, "innermost", "clock", "supervised_lease", "namespace_watchdog"),
        ]
        reading, watched = texts("await_namespace"), "supervised_namespaced"
    return block(
        b"" if apart else ON_STDIN,
        *assignments(given),
        b"unset search" if "search" not in given else b"",
        assignment("ELF", "\x7fELF"),
        *texts("find_program", *_LIVING, "clean_up"),
        watch_function(launch, [*prelude, *watchdog]),
        *launch_lines(launch.fence),
        *reading,
        text("start"),
        text("place"),
        b"become() {\n%s\n}" % _becoming(launch, piped=piped),
        *texts("supervise", watched),
        *start_lines(launch.fence),
        text("supervised"),
    )


def _becoming(launch: RemoteLaunch, *, piped: bool) -> bytes:
    """Return what becomes the program, in a process of its own."""
    lines = [text("await_begin")]
    if launch.namespaces is None:
        lines.insert(0, _FIND_SETSID)  # while others begin
        lines += [b'[ -z "$marker" ] || mark "$marker"']
        lines += [b'exec 5<"$place/in"'] if piped else []
    return b"\n".join(
        [*lines, b'exec >"$place/o1" 2>"$place/o2" 4>&-', text("go_on"), *become_lines(launch)]
    )


def ending_body(names: Iterable[str], spared: Iterable[str] = ()) -> list[bytes]:
    """Return the question that ends supervisors, named by their ids or the cookies of their runs.

    Their files are removed, and those of supervisors that are no more; yes says who was ended.

    Those with ``spared`` ids are left alone.
    """
    given = (word(" ".join(words)) for words in (names, spared))
    return [
        *texts(*_LIVING, "clean_up"),
        b'clean_up "${TMPDIR:-/tmp}/sortie-run" %s %s' % tuple(given),
        b'whole yes "$was"',
    ]
