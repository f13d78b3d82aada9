"""The git repository that agents work in, as one host has it: a mirror, and clones that borrow.

Rule 1: what Sortie runs of git on an agent's work runs no hook, no filter and no other program that
the workspace names; see ``sh/repository.sh``.
Rule 2: the mirror is fetched by one task at a time, and at most once in FRESH seconds.
Rule 3: no credential stands in an argument, in a file, or in the environment of an agent.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Mapping

import trio
from msgspec import Struct

from sortie.model import ChangedFile, GitError, cut
from sortie.model.git_urls import GitUrl
from sortie.model.hiding import repr_without
from sortie.model.texts import NOT_ON_A_LINE, end_of
from sortie.transports import Command, Transport
from sortie.workspaces.safe_git import script_text

FRESH = 10.0
"""Seconds for which a mirror counts as up to date."""

NETWORK_LIMIT = 1800.0
"""Seconds that a fetch, a clone with submodules, or a push may take."""

LARGEST_FILE = 100 * 1024 * 1024
"""Bytes of a file that is committed and pushed; GitHub takes no larger one."""

_MIRRORS = "@repositories"
_CLEAN = "@verify"
_ANSWER_LIMIT = 4 * 1024 * 1024
_FAULT_LIMIT = 600
_BAD_IN_REF = re.compile(r"[\x00-\x20\x7f~^:?*\[\\]+|\.\.+|@\{|//+")


class RepositoryOptions(Struct, frozen=True, kw_only=True):
    """What of the settings matters to git."""

    base: str | None = None
    submodules: bool = False
    lfs: bool = False
    author_name: str = "Sortie"
    author_email: str = "sortie@localhost"


class GitAccess(Struct, frozen=True, kw_only=True):
    """How git reaches the remote: name and password over HTTP, a command for SSH."""

    username: str = ""
    password: str = ""
    ssh_command: str = ""

    __repr__ = repr_without("password")


class Standing(Struct, frozen=True, kw_only=True):
    """How the work in a workspace stands when a run begins.

    ``tip`` is the branch's commit at the remote, None where it is not there; ``behind`` counts the
    commits of the base, and ``unmerged`` those of the branch at the remote, that the work lacks.
    """

    head: str
    tip: str | None = None
    behind: int = 0
    unmerged: int = 0


class Leftovers(Struct, frozen=True, kw_only=True):
    """The work of a workspace as a commit; ``paths`` are files that were in none, and ``large``
    those that are too large for one."""

    head: str
    paths: tuple[str, ...] = ()
    large: tuple[str, ...] = ()
    broken: bool = False


class Changes(Struct, frozen=True, kw_only=True):
    """What the commits of a work change against the base."""

    tree: str
    base_commit: str
    commits: int
    behind: int
    files: tuple[ChangedFile, ...]
    large: tuple[str, ...] = ()


class Moved(Struct, frozen=True):
    """Others have pushed to the branch: it is at this commit now."""

    tip: str


class Rescued(Struct, frozen=True, kw_only=True):
    """Work that was kept when its workspace was removed; ``at`` is in Unix seconds."""

    commit: str
    at: int
    ref: str
    issue: str
    run: str
    subject: str


def valid_branch(text: str) -> str:
    """Return a text as a branch name that git takes. Raises ValueError where nothing is left.

    What git forbids becomes ``-``: https://git-scm.com/docs/git-check-ref-format
    """
    parts = []
    for part in _BAD_IN_REF.sub("-", text.strip()).split("/"):
        plain = part.strip("-").lstrip(".").rstrip(".") or ""
        while plain.endswith(".lock"):
            plain = plain.removesuffix(".lock").rstrip(".")
        if plain:
            parts.append(plain)
    name = "/".join(parts)[:200].rstrip("/.")
    if not name or name == "@":
        raise ValueError(f"{text!r} leaves no name of a branch")
    return name


def ref_key(workspace_key: str) -> str:
    """Return the key of a workspace as a part of a ref."""
    return workspace_key.replace("%", "%25").replace(".", "%2E")


def key_of_ref(part: str) -> str:
    """Return the key of a workspace that a part of a ref stands for."""
    return part.replace("%2E", ".").replace("%25", "%")


class Repository:
    """A repository on one host. Every method raises GitError, and TransportError where its host
    cannot be asked."""

    def __init__(self, transport: Transport, root: str, url: GitUrl, options: RepositoryOptions):
        digest = hashlib.sha256(url.text.encode()).hexdigest()[:12]
        name = re.sub(r"[^A-Za-z0-9._-]", "_", url.path.rpartition("/")[2]) or "repository"
        self.mirror = f"{root}/{_MIRRORS}/{name[:80]}-{digest}.git"
        self.url = url
        self.base = options.base or ""
        self._clean = f"{root}/{_CLEAN}"
        self._root = root
        self.transport = transport
        self._options = options
        self._lock = trio.Lock()
        self._fetched_at: float | None = None

    async def fetch(self, access: GitAccess, env: Mapping[str, str]) -> None:
        """Bring the mirror up to date, unless it was a moment ago."""
        async with self._lock:
            now = trio.current_time()
            if self._fetched_at is not None and now - self._fetched_at < FRESH:
                return
            first = "1" if self._fetched_at is None else "0"
            said = await self._run(
                f"fetch {self.url.text}",
                ("mirror", self.mirror, self.url.text, first, self._options.base or ""),
                env=env,
                access=access,
                limit=NETWORK_LIMIT,
            )
            self.base = _known(said)["base"]
            self._fetched_at = now

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
        options = self._options
        said = await self._run(
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
                str(int(options.submodules)),
                str(int(options.lfs)),
                options.author_name,
                options.author_email,
            ),
            env=env,
            access=access,
            limit=NETWORK_LIMIT,
        )
        known = _known(said)
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
        options = self._options
        said = await self._run(
            "read what the agent left",
            (
                "leftovers",
                self.mirror,
                path,
                ref_key(key),
                str(int(may)),
                options.author_name,
                options.author_email,
                message,
                str(LARGEST_FILE),
                str(int(options.lfs)),
            ),
            env=env,
        )
        return Leftovers(
            head=_known(said)["head"],
            paths=tuple(map(_shown, _all(said, "left"))),
            large=tuple(map(_shown, _all(said, "large"))),
            broken="broken" in _known(said),
        )

    async def changes(self, head: str, env: Mapping[str, str]) -> Changes:
        """Return what a commit changes against the base."""
        arguments = ("changes", self.mirror, head, self.base, str(LARGEST_FILE))
        said = await self._run("compare the work with its base", arguments, env=env)
        known = _known(said)
        return Changes(
            tree=known["tree"],
            base_commit=known["base"],
            commits=int(known["commits"]),
            behind=int(known["behind"]),
            files=tuple(map(_file, _all(said, "file"))),
            large=tuple(_shown(text.partition(" ")[2]) for text in _all(said, "large")),
        )

    async def diff(self, head: str, env: Mapping[str, str], limit: int) -> str:
        """Return the difference to the base, its first ``limit`` bytes."""
        arguments = ("difference", self.mirror, head, self.base, str(limit))
        return await self._run("show the difference to the base", arguments, env=env)

    async def each_object(
        self, head: str, env: Mapping[str, str], take: Callable[[str, bytes], None]
    ) -> None:
        """Have ``take`` see the objects that a commit adds to what the remote has.

        It is given the id of an object and a piece of it, which begins with the end of the piece
        before, so that nothing is cut in half.
        """
        reader = _ObjectReader(take)
        await self._read("read the commits", ("objects", self.mirror, head), env, reader.feed)

    async def path_of(self, head: str, object_id: str, env: Mapping[str, str]) -> str:
        """Return the path under which a commit holds an object, "" where it has none."""
        arguments = ("path_of", self.mirror, head, object_id)
        return (await self._run("find a file", arguments, env=env)).strip()

    async def clean_clone(
        self, key: str, commit: str, access: GitAccess, env: Mapping[str, str]
    ) -> str:
        """Make a clone with nothing in it but a commit, and return its path."""
        options, path = self._options, f"{self._clean}/{key}"
        await self._run(
            "make a clean clone",
            (
                "clean",
                self.mirror,
                path,
                self.url.text,
                commit,
                str(int(options.submodules)),
                str(int(options.lfs)),
                options.author_name,
                options.author_email,
            ),
            env=env,
            access=access,
            limit=NETWORK_LIMIT,
        )
        return path

    async def remove_clean_clone(self, key: str) -> None:
        """Remove a clean clone."""
        await self.transport.files.remove_directory(self._clean, key)

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
            str(int(self._options.lfs)),
        )
        said = await self._run(
            f"push {branch}", arguments, env=env, access=access, limit=NETWORK_LIMIT
        )
        moved = _known(said).get("moved")
        return Moved(moved) if moved else None

    async def rescue(self, path: str, key: str, env: Mapping[str, str]) -> tuple[str, ...]:
        """Keep in the mirror all of a workspace that the remote does not have; return the refs.

        Raises GitError where a file is too large to be kept, which must not be lost.
        """
        options = self._options
        async with self._lock:
            said = await self._run(
                "rescue what is nowhere else",
                (
                    "rescue",
                    self.mirror,
                    path,
                    ref_key(key),
                    options.author_name,
                    options.author_email,
                    str(2 * 1024**3),
                ),
                env=env,
            )
        if large := _all(said, "large"):
            raise GitError(f"{large[0]} is too large to be kept in git; move it away")
        return _all(said, "kept")

    async def forget_rescued(self, before: float, env: Mapping[str, str]) -> tuple[str, ...]:
        """Forget what was rescued before a time in Unix seconds; return the refs."""
        said = await self._run(
            "forget what was rescued", ("forget", self.mirror, str(int(before))), env=env
        )
        return _all(said, "forgot")

    async def rescued(self, env: Mapping[str, str]) -> tuple[Rescued, ...]:
        """Return what is kept, the newest first."""
        said = await self._run("list what was rescued", ("rescued", self.mirror), env=env)
        return tuple(map(_rescued, said.splitlines()))

    async def show_rescued(self, ref: str, env: Mapping[str, str]) -> str:
        """Return the commits of rescued work with what they change."""
        return await self._run("show rescued work", ("show_rescued", self.mirror, ref), env=env)

    async def bundle(self, ref: str, env: Mapping[str, str], *, thin: bool) -> bytes:
        """Return rescued work as a bundle, a thin one for a clone that is up to date."""
        parts: list[bytes] = []
        await self._read(
            "pack rescued work", ("bundle", self.mirror, ref, str(int(thin))), env, parts.append
        )
        return b"".join(parts)

    async def _run(
        self,
        what: str,
        arguments: tuple[str, ...],
        *,
        env: Mapping[str, str],
        access: GitAccess | None = None,
        limit: float = NETWORK_LIMIT,
    ) -> str:
        parts, size = [], 0

        def take(chunk: bytes) -> None:
            nonlocal size
            size += len(chunk)
            if size <= _ANSWER_LIMIT:
                parts.append(chunk)

        with trio.move_on_after(limit) as scope:
            await self._read(what, arguments, env, take, access)
        if scope.cancelled_caught:
            raise GitError(f"could not {what}: it took more than {limit:g} s")
        return b"".join(parts).decode("utf-8", "replace")

    async def _read(
        self,
        what: str,
        arguments: tuple[str, ...],
        env: Mapping[str, str],
        take: Callable[[bytes], None],
        access: GitAccess | None = None,
    ) -> None:
        """Have ``take`` see what git writes. Raises GitError where it fails, and says why."""
        command = Command(
            argv=("/bin/sh", "-c", script_text("repository"), "sortie-git", *arguments),
            cwd=self._root,
            env={**env, **_variables(self.url, access)},
        )
        complaint = b""
        async with self.transport.process(command) as process:
            async for stream, chunk in process.output():
                if stream == 1:
                    take(chunk)
                else:
                    complaint = (complaint + chunk)[-4 * _FAULT_LIMIT :]
            ended = await process.wait()
        if ended.status != 0:
            raise GitError(f"could not {what}: {_fault(complaint)}")


def agent_variables(url: GitUrl, access: GitAccess) -> dict[str, str]:
    """Return the variables with which an agent's own git may push."""
    if not access.password:
        return {"GIT_SSH_COMMAND": access.ssh_command} if access.ssh_command else {}
    helper = (
        '!f() { [ "$1" != get ] || printf "username=%s\\npassword=%s\\n"'
        ' "$SORTIE_GIT_USERNAME" "$SORTIE_GIT_PASSWORD"; }; f'
    )
    return {
        "GIT_CONFIG_COUNT": "2",
        "GIT_CONFIG_KEY_0": "credential.helper",
        "GIT_CONFIG_VALUE_0": "",
        "GIT_CONFIG_KEY_1": f"credential.{url.root}.helper",
        "GIT_CONFIG_VALUE_1": helper,
        "SORTIE_GIT_USERNAME": access.username,
        "SORTIE_GIT_PASSWORD": access.password,
    }


def _variables(url: GitUrl, access: GitAccess | None) -> dict[str, str]:
    if access is None:
        return {}
    found = {
        "SORTIE_GIT_USERNAME": access.username,
        "SORTIE_GIT_PASSWORD": access.password,
        "SORTIE_GIT_ROOT": url.root if url.is_http else "",
        "SORTIE_GIT_SSH": access.ssh_command,
    }
    return {name: value for name, value in found.items() if value}


def _fault(complaint: bytes) -> str:
    """Return what git complained of on one line; its last lines say what for."""
    lines = [line.strip() for line in complaint.decode("utf-8", "replace").splitlines()]
    told = "; ".join(line for line in lines if line and not line.startswith("hint:"))
    return end_of(NOT_ON_A_LINE.sub("\ufffd", told), _FAULT_LIMIT) or "git said nothing"


def _known(said: str) -> dict[str, str]:
    return dict(line.partition(" ")[::2] for line in said.splitlines())


def _all(said: str, word: str) -> tuple[str, ...]:
    lines = (line.partition(" ") for line in said.splitlines())
    return tuple(rest for first, _, rest in lines if first == word)


def _shown(path: str) -> str:
    return cut(NOT_ON_A_LINE.sub("\ufffd", path), 1000)


def _file(text: str) -> ChangedFile:
    added, removed, path = text.split("\t", 2) if text.count("\t") >= 2 else ("-", "-", text)
    return ChangedFile(
        path=_shown(path),
        added=int(added) if added.isdigit() else None,
        removed=int(removed) if removed.isdigit() else None,
    )


def _rescued(line: str) -> Rescued:
    commit, at, ref, subject = [*line.split(" ", 3), "", "", ""][:4]
    issue, _, run = ref.removeprefix("refs/sortie/rescue/").partition("/")
    return Rescued(
        commit=commit,
        at=int(at) if at.isdigit() else 0,
        ref=ref,
        issue=key_of_ref(issue),
        run=run,
        subject=_shown(subject),
    )


_OVERLAP = 16384
_PIECE = 1 << 20


class _ObjectReader:
    """Reads what ``git cat-file --batch`` writes: a line of id, type and size, then the content."""

    def __init__(self, take: Callable[[str, bytes], None]) -> None:
        self._take = take
        self._rest = b""
        self._left = 0
        self._id = ""
        self._before = b""

    def feed(self, chunk: bytes) -> None:
        """Read on. Raises GitError for what git does not write."""
        rest = self._rest + chunk
        while rest:
            if self._left:
                piece = rest[: min(self._left, _PIECE)]
                rest, self._left = rest[len(piece) :], self._left - len(piece)
                self._take(self._id, self._before + piece)
                self._before = (self._before + piece)[-_OVERLAP:]
                continue
            line, end, behind = rest.partition(b"\n")
            if not end:
                break
            rest, words = behind, line.split(b" ")
            if len(words) != 3:
                raise GitError("could not read the commits: git wrote something unexpected")
            self._id, self._left, self._before = words[0].decode(), int(words[2]) + 1, b""
        self._rest = rest
