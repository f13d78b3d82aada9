"""What git tells of a tree, on this machine and on a host."""

from __future__ import annotations

import os
import subprocess

import trio

from sortie.transports import Transport
from sortie.workspaces import GitWork, git_head, work_since

WHO = ("-c", "user.name=n", "-c", "user.email=n@example.org")


async def test_git_is_asked_where_the_tree_is(transport: Transport, place: str) -> None:
    """Branch, commit, counts and subjects; and nothing where there is no tree."""

    def git(*words: str) -> str:
        command = ["git", "-C", place, *WHO, *words]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()

    env = {"PATH": os.environ["PATH"]}
    with trio.fail_after(60):
        nothing = await work_since(transport, place, env, None)
        git("init", "-q", "-b", "main")
        git("commit", "-q", "--allow-empty", "-m", "Begin")
        before = await git_head(transport, place, env)
        git("checkout", "-q", "-b", "it's $(mine)".replace(" ", "-"))
        git("commit", "-q", "--allow-empty", "-m", "Go \u00fcber `on`")
        work = await work_since(transport, place, env, before.head)

    head = git("rev-parse", "HEAD")
    assert nothing == GitWork()
    assert before == GitWork(head=git("rev-parse", "main"))
    assert work == GitWork(
        head=head,
        branch="it's-$(mine)",
        commits=1,
        subjects=(f"{head[:7]} Go \u00fcber `on`",),
        files=0,
        uncommitted=0,
    )
