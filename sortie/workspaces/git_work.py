"""Tells what was done in a workspace's git tree; runs no program that the tree names."""

from __future__ import annotations

from collections.abc import Mapping

import trio
from msgspec import Struct

from sortie.model import TransportError, cut
from sortie.model.texts import NOT_ON_A_LINE
from sortie.transports import Transport
from sortie.workspaces.safe_git import git_script

WORK_DONE_LIMIT = 10.0
"""Seconds in which git has to answer."""

_WORK_DONE_BYTES = 16384
_TEXT_LIMIT = 200
_HEAD_ALONE = "-"


class GitWork(Struct, frozen=True, kw_only=True):
    """How a git tree stands; ``error`` says why that is not known. See RunSummary for the rest.

    All is None where there is no git tree.
    """

    head: str | None = None
    branch: str | None = None
    commits: int | None = None
    subjects: tuple[str, ...] = ()
    files: int | None = None
    uncommitted: int | None = None
    error: str | None = None


async def git_head(transport: Transport, path: str, env: Mapping[str, str]) -> GitWork:
    """Return which commit is checked out, and nothing else."""
    return await _look(transport, path, env, _HEAD_ALONE)


async def work_since(
    transport: Transport, path: str, env: Mapping[str, str], base: str | None
) -> GitWork:
    """Return what was done since a commit, or since ever; whatever goes wrong is ``error``."""
    return await _look(transport, path, env, base or "")


async def _look(transport: Transport, path: str, env: Mapping[str, str], base: str) -> GitWork:
    script = git_script(
        "work_done",
        purpose="look what was done in the git tree",
        arguments=(base,),
        cwd=path,
        env=env,
        limit=_WORK_DONE_BYTES,
    )
    answer = None
    try:
        with trio.move_on_after(WORK_DONE_LIMIT):
            answer = await transport.run_script(script)
    except TransportError as exc:
        return GitWork(error=_line(str(exc)))
    if answer is None:
        return GitWork(error=f"git has not answered within {WORK_DONE_LIMIT:g} s")
    return read_answer(answer.decode("utf-8", "replace"))


def read_answer(answer: str) -> GitWork:
    """Read what the script prints."""
    lines = answer.split("\n")
    told = [line.partition(" ")[::2] for line in lines]
    known = dict(told)
    if "end" not in known:
        return GitWork(error="the answer of git is cut off")
    if "failed" in known:
        return GitWork(error=_line(known["failed"]))
    return GitWork(
        head=known.get("head"),
        branch=_line(known["branch"]) if "branch" in known else None,
        commits=_number(known.get("commits")),
        subjects=tuple(_line(text) for word, text in told if word == "subject"),
        files=_number(known.get("files")),
        uncommitted=_number(known.get("uncommitted")),
    )


def _number(text: str | None) -> int | None:
    return int(text) if text is not None and text.isascii() and text.isdigit() else None


def _line(text: str) -> str:
    return cut(NOT_ON_A_LINE.sub("\ufffd", text), _TEXT_LIMIT)
