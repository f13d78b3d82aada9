"""Work that is kept in a mirror when its workspace is removed."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from sortie.model import GitError
from sortie.workspaces.git_values import Rescued, all_in, lines_of, ref_key, rescued_in
from sortie.workspaces.repository import Repository


class Rescues:
    """What was kept in a repository's mirror. Every method raises as those of Repository."""

    def __init__(self, repository: Repository) -> None:
        self._repository = repository

    async def rescue(self, path: str, key: str, env: Mapping[str, str]) -> tuple[str, ...]:
        """Keep in the mirror all of a workspace that the remote does not have; return the refs.

        Raises GitError where a file is too large to be kept, which must not be lost.
        """
        async with self._repository.state.lock:
            said = await self._repository.git.run(
                "rescue what is nowhere else",
                (
                    "rescue",
                    self._repository.mirror,
                    path,
                    ref_key(key),
                    *self._repository.who,
                    str(2 * 1024**3),
                    self._repository.lfs,
                ),
                env=env,
            )
        if large := all_in(said, "large"):
            raise GitError(f"{large[0]} is too large to be kept in git; move it away")
        return all_in(said, "kept")

    async def forget(self, before: float, env: Mapping[str, str]) -> tuple[str, ...]:
        """Forget what was rescued before a time in Unix seconds; return the refs."""
        said = await self._repository.git.run(
            "forget what was rescued",
            ("forget", self._repository.mirror, str(int(before))),
            env=env,
        )
        return all_in(said, "forgot")

    async def listed(self, env: Mapping[str, str]) -> tuple[Rescued, ...]:
        """Return what is kept, the newest first."""
        said = await self._repository.git.run(
            "list what was rescued", ("rescued", self._repository.mirror), env=env
        )
        return tuple(map(rescued_in, lines_of(said)))

    async def show(self, ref: str, env: Mapping[str, str]) -> str:
        """Return the commits of rescued work with what they change."""
        return await self._repository.git.run(
            "show rescued work", ("show_rescued", self._repository.mirror, ref), env=env
        )

    async def lfs_files(
        self, ref: str, env: Mapping[str, str], take: Callable[[bytes], object]
    ) -> None:
        """Have ``take`` see the files of LFS that rescued work has, as an archive below
        ``objects``; nothing where it has none."""
        arguments = ("bundle_files", self._repository.mirror, ref)
        await self._repository.git.read("pack rescued files", arguments, env, take)

    async def bundle(
        self, ref: str, env: Mapping[str, str], take: Callable[[bytes], object], *, thin: bool
    ) -> None:
        """Have ``take`` see rescued work as a bundle, a thin one for a clone that is up to date."""
        arguments = ("bundle", self._repository.mirror, ref, str(int(thin)))
        await self._repository.git.read("pack rescued work", arguments, env, take)
