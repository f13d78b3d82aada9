"""Files that steer agents: for the time of a turn those of the base stand in a workspace.

What an agent, or whoever pushed to its branch, has made of them lies aside meanwhile, and is put
back before anything of the workspace is committed, rescued or checked out; see
``sh/agent_files.sh``.
"""

from __future__ import annotations

from collections.abc import Mapping

from sortie.workspaces.git_values import all_in, ref_key, shown_path
from sortie.workspaces.repository import Repository

_LIMIT = 300.0
"""Seconds that this may take, on a tree of any size."""


async def put_base_in_place(
    repository: Repository, path: str, key: str, env: Mapping[str, str]
) -> tuple[str, ...]:
    """Put the files of the base in place, and return the paths that stood otherwise. Hooks of git
    are taken away. Raises GitError and TransportError."""
    arguments = ("agent_files", repository.mirror, path, ref_key(key), repository.base)
    what = "put the base's files for agents in place"
    said = await repository.git.run(what, arguments, env=env, limit=_LIMIT)
    return tuple(map(shown_path, all_in(said, "aside")))


async def put_back(repository: Repository, path: str, key: str, env: Mapping[str, str]) -> None:
    """Put back what was put aside, if anything was."""
    arguments = ("put_back", repository.mirror, path, ref_key(key))
    what = "put the branch's files for agents back"
    await repository.git.run(what, arguments, env=env, limit=_LIMIT)
