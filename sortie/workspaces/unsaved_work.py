"""Tells what of the git trees in a workspace would be lost with it; runs no program of theirs."""

from __future__ import annotations

from collections.abc import Mapping

import trio

from sortie.model import HostError, TransportError, cut
from sortie.resources import shortage_behind
from sortie.transports import Transport
from sortie.workspaces.safe_git import git_script

UNSAVED_WORK_LIMIT = 60.0
"""Seconds in which git has to answer."""

LOOK_FOR_WORK = "look for work that is nowhere else"
"""The purpose of the script."""

_UNSAVED_WORK_BYTES = 65536
_SENTENCE_LIMIT = 400


async def unsaved_work(transport: Transport, path: str, env: Mapping[str, str]) -> str | None:
    """Return what of a workspace is nowhere else, in words; None where nothing is.

    That are changes that are not committed (also files that git neither knows nor ignores) and
    commits that are on no remote. Where git fails, is missing or takes too long it is not known
    what there is, and the words say so. A directory without a git tree has nothing of the kind.
    Raises TransportError where its host cannot be asked, or for a shortage on this machine.
    """
    script = git_script(
        "unsaved_work",
        purpose=LOOK_FOR_WORK,
        cwd=path,
        env=env,
        limit=_UNSAVED_WORK_BYTES,
    )
    answer = b""
    try:
        with trio.move_on_after(UNSAVED_WORK_LIMIT) as limit:
            answer = await transport.run_script(script)
    except TransportError as exc:
        if isinstance(exc, HostError) or shortage_behind(exc) is not None:
            raise
        return _unknown(str(exc))
    if limit.cancelled_caught:
        return _unknown(f"git has not answered within {UNSAVED_WORK_LIMIT:g} s")
    return _in_words(answer.decode("utf-8", "replace"))


def _in_words(answer: str) -> str | None:
    lines = answer.splitlines()
    if lines[-1:] != ["end"]:
        return _unknown("the answer is cut off")
    found = [words for line in lines[:-1] if (words := _of_line(line))]
    return cut("; ".join(found), _SENTENCE_LIMIT) or None


def _of_line(line: str) -> str | None:
    """Return what a line says of a tree, None where nothing is in it."""
    match line.split(" ", 3):
        case ["tree", "0", "0", *_]:
            return None
        case ["tree", changes, commits, *branch] if changes.isdigit() and commits.isdigit():
            counts = [(int(changes), "uncommitted change"), (int(commits), "unpushed commit")]
            words = [f"{n} {what}{'' if n == 1 else 's'}" for n, what in counts if n]
            where = f" (on branch {branch[0]})" if branch and branch[0] else ""
            return " and ".join(words) + where
    return _unknown(line.removeprefix("unknown "))


def _unknown(reason: str) -> str:
    return f"it is not known whether all work is pushed: {reason}"
