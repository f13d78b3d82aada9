"""The git repository that agents work in, as one host has it: a mirror, and clones that borrow.

Rule 1: what Sortie runs of git on an agent's work runs no hook, no filter and no other program that
the workspace names; see ``sh/repository.sh``.
Rule 2: the mirror is fetched by one task at a time, and at most once in FRESH seconds.
Rule 3: no credential stands in an argument, in a file, or in the environment of an agent.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Mapping, Sequence

import trio

from sortie.model.git_urls import GitUrl
from sortie.transports import Transport
from sortie.workspaces.git_values import (
    Changes,
    ClonePurpose,
    GitAccess,
    Incomplete,
    Leftovers,
    Moved,
    ObjectReader,
    RepositoryOptions,
    Standing,
    all_in,
    changed_file,
    known_in,
    lines_of,
    ref_key,
    shown_path,
)
from sortie.workspaces.repository_script import NETWORK_LIMIT, RepositoryScript

FRESH = 10.0
"""Seconds for which a mirror counts as up to date."""

LARGEST_FILE = 100 * 1024 * 1024
"""Bytes of a file that is committed and pushed; GitHub takes no larger one."""

_MIRRORS = "@repositories"


class MirrorState:
    """What repositories share whose mirror is one directory: one of them fetches at a time, and the
    first fetch of a daemon cleans the mirror, as nothing works in it before."""

    def __init__(self) -> None:
        self.lock = trio.Lock()
        self.is_clean = False


class Repository:
    """A repository on one host. Every method raises GitError, and TransportError where its host
    cannot be asked."""

    def __init__(self, transport: Transport, root: str, url: GitUrl, options: RepositoryOptions):
        digest = hashlib.sha256(url.text.encode()).hexdigest()[:12]
        name = re.sub(r"[^A-Za-z0-9._-]", "_", url.path.rpartition("/")[2]) or "repository"
        self.mirror = f"{root}/{_MIRRORS}/{name[:80]}-{digest}.git"
        self.url = url
        self.base = options.base or ""
        self._root = root
        self.git = RepositoryScript(transport, root, url)
        self._options = options
        self.who = (options.author_name, options.author_email)
        self.lfs = str(int(options.lfs))
        self._extras = (str(int(options.submodules)), self.lfs)
        self.state = MirrorState()
        self._fetched_at: float | None = None

    async def fetch(self, access: GitAccess, env: Mapping[str, str]) -> None:
        """Bring the mirror up to date, unless it was a moment ago."""
        async with self.state.lock:
            now = trio.current_time()
            if self._fetched_at is not None and now - self._fetched_at < FRESH:
                return
            first = "0" if self.state.is_clean else "1"
            said = await self.git.run(
                f"fetch {self.url.text}",
                ("mirror", self.mirror, self.url.text, first, self._options.base or ""),
                env=env,
                access=access,
                limit=NETWORK_LIMIT,
            )
            self.base = known_in(said)["base"]
            self._fetched_at, self.state.is_clean = now, True

    async def remote_base(self, access: GitAccess, env: Mapping[str, str]) -> str:
        """Ask the remote for the branch that work begins at."""
        arguments = ("remote_base", self.url.text, self._options.base or "")
        said = await self.git.run(
            f"reach {self.url.text}", arguments, env=env, access=access, limit=60
        )
        return said.strip()

    @property
    def was_fetched(self) -> bool:
        """Whether this daemon has fetched it. The first fetch removes from the mirror what an
        earlier daemon has left half done there, so nothing may work in the mirror before."""
        return self._fetched_at is not None

    def know_base(self, base: str) -> None:
        """Know the base of work that another daemon has begun, where nothing was fetched yet."""
        self.base = self.base or base

    def forget_fetch(self) -> None:
        """Have the next fetch ask the remote, whenever that is."""
        if self._fetched_at is not None:
            self._fetched_at = float("-inf")

    async def check_out(
        self,
        path: str,
        key: str,
        run_id: str,
        branch: str,
        access: GitAccess,
        env: Mapping[str, str],
        *,
        new: bool,
    ) -> Standing:
        """Make an empty directory a clone with the branch checked out, or tell a clone what is new
        at the remote. Nothing of an agent's is reset."""
        said = await self.git.run(
            f"check out {branch}",
            (
                "checkout",
                self.mirror,
                path,
                self.url.text,
                branch,
                self.base,
                ref_key(key),
                run_id,
                str(int(new)),
                *self._extras,
                *self.who,
                str(int(self._options.agent_pushes)),
            ),
            env=env,
            access=access,
            limit=NETWORK_LIMIT,
        )
        known = known_in(said)
        return Standing(
            head=known["head"],
            tip=known.get("tip") or None,
            behind=int(known["behind"]),
            unmerged=int(known.get("unmerged", "0")),
        )

    async def commit_leftovers(
        self, path: str, key: str, message: str, env: Mapping[str, str], *, may: bool
    ) -> Leftovers:
        """Take over the commits of a workspace, and commit what is in none where that is wanted."""
        said = await self.git.run(
            "read what the agent left",
            (
                "leftovers",
                self.mirror,
                path,
                ref_key(key),
                str(int(may)),
                *self.who,
                message,
                str(LARGEST_FILE),
                self.lfs,
            ),
            env=env,
        )
        return Leftovers(
            head=known_in(said)["head"],
            paths=tuple(map(shown_path, all_in(said, "left"))),
            large=tuple(map(shown_path, all_in(said, "large"))),
            broken="broken" in known_in(said),
        )

    async def changes(self, head: str, env: Mapping[str, str]) -> Changes:
        """Return what a commit changes against the base."""
        arguments = ("changes", self.mirror, head, self.base, str(LARGEST_FILE))
        said = await self.git.run("compare the work with its base", arguments, env=env)
        known = known_in(said)
        return Changes(
            tree=known["tree"],
            base_commit=known["base"],
            commits=int(known["commits"]),
            behind=int(known["behind"]),
            files=tuple(map(changed_file, all_in(said, "file"))),
            large=tuple(shown_path(text.partition(" ")[2]) for text in all_in(said, "large")),
        )

    async def diff(self, head: str, env: Mapping[str, str], limit: int) -> str:
        """Return the difference to the base, its first ``limit`` bytes."""
        arguments = ("difference", self.mirror, head, self.base, str(limit))
        return await self.git.run("show the difference to the base", arguments, env=env)

    async def conflicts(self, head: str, env: Mapping[str, str]) -> tuple[str, ...]:
        """Return the paths in which a commit conflicts with the base, as far as git can tell."""
        arguments = ("conflicts", self.mirror, head, self.base)
        said = await self.git.run("compare the work with its base", arguments, env=env)
        return tuple(map(shown_path, lines_of(said)))

    async def each_object(
        self, head: str, env: Mapping[str, str], take: Callable[[str, bytes], None]
    ) -> None:
        """Have ``take`` see the objects that a commit adds to what the remote has.

        It is given the id of an object and a piece of it, which begins with the end of the piece
        before, so that nothing is cut in half.
        """
        reader = ObjectReader(take)
        arguments = ("objects", self.mirror, head, self.base, self.lfs)
        await self.git.read("read the commits", arguments, env, reader.feed)

    async def path_of(self, head: str, object_id: str, env: Mapping[str, str]) -> str:
        """Return the path under which a commit holds an object, "" where it has none."""
        arguments = ("path_of", self.mirror, head, object_id)
        return (await self.git.run("find a file", arguments, env=env)).strip()

    async def base_file(
        self, names: Sequence[str], env: Mapping[str, str]
    ) -> tuple[str, str] | None:
        """Return the name and the text of the first of some files that the base has, None where it
        has none. Raises GitError and TransportError."""
        arguments = ("base_file", self.mirror, self.base, *names)
        said = await self.git.run("read a file of the base", arguments, env=env)
        name, _, text = said.partition("\n")
        return (name, text) if name else None

    def clean_path(self, key: str, purpose: ClonePurpose = "verify") -> str:
        """Return where the clean clone for a workspace is."""
        return f"{self._root}/@{purpose}/{key}"

    async def clean_clone(
        self,
        key: str,
        commit: str,
        access: GitAccess,
        env: Mapping[str, str],
        purpose: ClonePurpose = "verify",
    ) -> Incomplete | None:
        """Make a clone with nothing in it but a commit; return what of it cannot be had."""
        path = self.clean_path(key, purpose)
        arguments = ("clean", self.mirror, path, self.url.text, commit, *self._extras, *self.who)
        said = await self.git.run(
            "make a clean clone",
            arguments,
            env=env,
            access=access,
            limit=NETWORK_LIMIT,
        )
        command, _, told = said.removeprefix("failed ").partition("\n")
        return Incomplete(command=command, said=told) if said.startswith("failed ") else None

    async def remove_clean_clone(self, key: str, purpose: ClonePurpose = "verify") -> None:
        """Remove a clean clone."""
        await self.git.transport.files.remove_directory(f"{self._root}/@{purpose}", key)

    async def push(
        self,
        head: str,
        branch: str,
        began_at: str | None,
        access: GitAccess,
        env: Mapping[str, str],
    ) -> Moved | None:
        """Push a commit to its branch, unless it is there; return where others have pushed.

        What was at the remote when the work began may be replaced, as the agent may have rewritten
        it; nothing else may.
        """
        arguments = (
            "push",
            self.mirror,
            self.url.text,
            head,
            branch,
            began_at or "",
            self.lfs,
            self.base,
        )
        said = await self.git.run(
            f"push {branch}", arguments, env=env, access=access, limit=NETWORK_LIMIT
        )
        moved = known_in(said).get("moved")
        return Moved(moved) if moved else None
