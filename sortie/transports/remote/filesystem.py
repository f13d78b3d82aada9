"""Directories and small files on a remote host, through its /bin/sh and coreutils.

Rule 1: a step into a directory is checked after it was made: where we then are is where the path
says, so that nobody who swaps a part of it for a link leads us elsewhere.
Rule 2: what cannot be kept through a shell: a name that is looked at and then opened, removed or
replaced may have become another one in between. Where the host's ``dd`` and ``mv`` are GNU's, that
one is no link and no FIFO either; elsewhere somebody quick could have a link followed.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Collection, Coroutine
from typing import Any, TypeVar

from sortie.model import TransportError
from sortie.resources.lease import Lease
from sortie.transports import Files
from sortie.transports.paths import parts_of, plain, single
from sortie.transports.remote.fence import FindFence, fence_name, no_fence
from sortie.transports.remote.protocol import numbers_in
from sortie.transports.remote.remote_script import REPLY_LIMIT
from sortie.transports.remote.scripts import (
    assignment,
    assignments,
    printing,
    quoted,
    standing_question,
    text,
    texts,
)
from sortie.transports.remote.shell import ANSWER_BOUND, Shell, ShellAnswer, ShellQuestion

T = TypeVar("T")

REMOVAL_BOUND = 600.0
"""Seconds for the removal of one directory, which may be large."""

_FILE_NAME_LIMIT = 255
_PATH_LIMIT = 4096
_ENDING = (
    "stat_of",
    "clock",
    "lives",
    "child_of",
    "innermost",
    "newest",
    "end_tree",
    "end_namespaces",
    "clean_up",
)
_NO_LEADER = b"announce() { :; }\noust() { return 1; }\nend_older() { :; }\ntidy() { :; }"
_HOME = re.compile(r"(~[A-Za-z0-9._-]*)(?:/(.*))?", re.ASCII | re.DOTALL)


class RemoteFiles:
    """The directories and files of one host; a path may begin with ``~`` or ``~user`` there."""

    def __init__(self, shell: Shell, fence: FindFence = no_fence) -> None:
        self._shell = shell
        self._fence = fence

    async def together(self, work: Callable[[Files], Coroutine[Any, Any, T]]) -> T:
        """Do several operations, one after the other; see the port."""
        return await work(self)

    async def make_directory(self, root: str, name: str) -> tuple[str, bool]:
        """Make ``root/name`` inside the real root; see the port."""
        body = [_path("root", root), assignment("name", _short(single(name))), text("make")]
        attempt = f"make the directory {name} in {root}"
        answer = await self._change(attempt, body, limit=_PATH_LIMIT)
        return os.fsdecode(answer.content), answer.said == "new"

    async def remove_directory(self, root: str, name: str) -> bool:
        """Remove ``root/name`` with all it holds; see the port."""
        body = [_path("root", root), assignment("name", _short(single(name))), text("remove")]
        answer = await self._change(f"remove {root}/{name}", body, REMOVAL_BOUND)
        return answer.said == "removed"

    async def contained(self, root: str, path: str) -> bool:
        """Tell whether ``path`` is a directory inside the real root; see the port."""
        try:
            body = [_path("root", root), _path("path", path), text("inside"), text("contained")]
        except TransportError:
            return False
        answer = await self._ask(f"look at {path}", body)
        return answer.said == "inside"

    async def read_file(self, directory: str, name: str, limit: int) -> bytes | None:
        """Return at most ``limit`` bytes of a regular file; see the port."""
        return await self._read([], directory, name, limit)

    async def _read(
        self, check: list[bytes], directory: str, name: str, limit: int
    ) -> bytes | None:
        given = [*_file(directory, name), assignment("limit", str(limit))]
        body = [*check, *given, text("read")]
        answer = await self._ask(f"read {directory}/{name}", body, limit=max(limit, 0))
        return answer.content if answer.said == "there" else None

    async def read_file_inside(
        self, root: str, directory: str, name: str, limit: int
    ) -> bytes | None:
        """Do as ``read_file`` below a directory inside the real root; see the port."""
        check = [
            _path("root", root),
            _path("path", directory),
            text("inside"),
            b"is_inside || no 'its directory does not lie inside the root'",
        ]
        return await self._read(check, directory, name, limit)

    async def write_file(self, directory: str, name: str, content: bytes) -> None:
        """Write a small file; see the port."""
        body = [b"content() {\n%s\n}" % printing(content), *_file(directory, name), text("write")]
        await self._change(f"write {directory}/{name}", body)

    async def remove_file(self, directory: str, name: str) -> None:
        """Remove a file, if any; see the port."""
        body = [*_file(directory, name), text("unlink")]
        await self._change(f"remove {directory}/{name}", body)

    async def resolve_program(self, name: str, path: str | None) -> str:
        """Return the absolute path of an executable on the host's PATH, or on ``path``.

        Raises TransportError where there is none.
        """
        search = b"search=$PATH" if path is None else assignment("search", path)
        answer = await self._shell.ask(
            ShellQuestion(
                attempt=f"find the program {name!r}",
                body=[search, assignment("name", name), text("find_program"), text("resolve")],
                limit=_PATH_LIMIT,
                of_login=path is None,
            )
        )
        return os.fsdecode(answer.content)

    async def occupied(self, path: str) -> dict[int, int | None] | None:
        """Return the pids of the processes whose working directory is ``path`` or below it, each
        with its soft limit on file locks, which may be a launch's mark.

        None where the host has no /proc, and so nobody can be seen.
        """
        body = [_path("path", path), *map(text, ("stat_of", "newest", "occupied"))]
        answer = await self._ask(f"look who lives in {path}", body)
        if answer.said == "blind":
            return None
        found: dict[int, int | None] = {}
        for word in answer.said.split():
            pid, _, limit = word.partition(":")
            for number in numbers_in(pid):
                found[number] = next(iter(numbers_in(limit)), None)
        return found

    async def _change(
        self,
        attempt: str,
        body: list[bytes],
        bound: float = ANSWER_BOUND,
        limit: int = REPLY_LIMIT,
    ) -> ShellAnswer:
        """Ask what changes something: refused where a newer leader has taken the host over."""
        fence = await self._fence()
        question = ShellQuestion(attempt=attempt, body=body, bound=bound, limit=limit, fence=fence)
        return await self._shell.ask(question)

    async def _ask(self, attempt: str, body: list[bytes], limit: int = REPLY_LIMIT) -> ShellAnswer:
        question = ShellQuestion(attempt=attempt, body=body, limit=limit)
        return await self._shell.ask(question)


def _path(variable: str, path: str) -> bytes:
    """Return the lines that give a variable a path; the host knows where ``~`` is.

    Raises TransportError for a path that is neither absolute nor begins so.
    """
    home = _HOME.fullmatch(path)
    if home is None:
        return assignment(variable, plain(path))
    below = plain("/" + (home[2] or ""))
    lines = f'{variable}={home[1]}\nis_expanded "${variable}"'.encode()
    if below != "/":
        lines += b"\n%s=${%s%%/}%s" % (variable.encode(), variable.encode(), quoted(below))
    return lines


def holding_script(
    nonce: str,
    root: str,
    holder: str,
    session: str,
    lease: float,
    leader: Lease | None = None,
    spared: Collection[str] = (),
) -> bytes:
    """Return the question that holds a root for as long as its session lives, which has a name.

    With a lease, as ``leader``, the root is taken over from an older one of the same workflow; the
    programs of the supervisors with the ``spared`` ids go on.
    """
    given = assignments({"holder": holder, "session": session, "lease": f"{lease:g}"})
    given += [assignment("token", ""), _NO_LEADER] if leader is None else _leading(leader, spared)
    body = [text("paths"), _path("root", root), *given, text("hold")]
    return standing_question(nonce, body)


def _leading(leader: Lease, spared: Collection[str]) -> list[bytes]:
    """Return what takes a root over."""
    given = {"fence": f"./{fence_name(leader.scope)}", "token": str(leader.token)}
    given["spared"] = " ".join(spared)
    return [*assignments(given), *texts(*_ENDING, "leader", "take_over")]


def _short(name: str) -> str:
    if len(os.fsencode(name)) > _FILE_NAME_LIMIT:
        raise TransportError(f"{name[:20]}... is too long for a name ({_FILE_NAME_LIMIT} bytes)")
    return name


def _file(directory: str, name: str) -> list[bytes]:
    """Return the lines that say which file is meant. Raises TransportError."""
    *above, last = [_short(part) for part in parts_of(name)]
    steps = b"\n".join(b"go_below %s || return 1" % quoted(part) for part in above)
    made = b"\n".join(b"make_below %s\ngo_below %s" % (quoted(p), quoted(p)) for p in above)
    return [
        _path("directory", directory),
        assignment("last", last),
        b'reach() {\ngo_to "$directory" || return 1\n%s\n}' % steps,
        b"reach_or_make() {\ngo_to \"$directory\" || no 'it does not exist'\n%s\n}" % made,
    ]
