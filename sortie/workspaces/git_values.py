"""What git is asked about a repository, and how its answers are read; pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Literal

from msgspec import Struct

from sortie.model import ChangedFile, GitError, cut
from sortie.model.git_urls import GitUrl
from sortie.model.hiding import repr_without
from sortie.model.texts import NOT_ON_A_LINE, end_of

_FAULT_LIMIT = 600
_SAYS_NOTHING = (
    "hint:",
    "Warning: Permanently added",
    "@",
    "fatal: Could not read from remote repository.",
    "Please make sure you have the correct access rights",
    "and the repository exists.",
)
"""How lines begin that git and ssh add to what has gone wrong."""
_BAD_IN_REF = re.compile(r"[\x00-\x20\x7f~^:?*\[\\]+|\.\.+|@\{|//+")
_BRANCH_BYTES = 200
_OVERLAP = 16384
_PIECE = 1 << 20

ClonePurpose = Literal["verify", "review"]
"""What a clean clone is for."""


class RepositoryOptions(Struct, frozen=True, kw_only=True):
    """What of the settings matters to git."""

    base: str | None = None
    submodules: bool = False
    lfs: bool = False
    agent_pushes: bool = False
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


class Incomplete(Struct, frozen=True, kw_only=True):
    """A commit names files of LFS or submodules that cannot be had; what the command said of it."""

    command: str
    said: str


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

    What git forbids becomes ``-``: https://git-scm.com/docs/git-check-ref-format. A part of it is
    the name of a file, so that its length is in bytes.
    """
    known = text.strip().encode("utf-8", "replace").decode()
    plain = _BAD_IN_REF.sub("-", known)
    short = plain.encode()[:_BRANCH_BYTES].decode("utf-8", "ignore")
    name = "/".join(filter(None, map(_part_of_ref, short.split("/"))))
    if name in ("", "@", "HEAD"):
        raise ValueError(f"{text!r} leaves no name of a branch")
    return name


def _part_of_ref(part: str) -> str:
    plain = part.strip("-").lstrip(".").rstrip(".")
    while plain.endswith(".lock"):
        plain = plain.removesuffix(".lock").rstrip(".")
    return plain


def ref_key(workspace_key: str) -> str:
    """Return the key of a workspace as a part of a ref."""
    return workspace_key.replace("%", "%25").replace(".", "%2E")


def key_of_ref(part: str) -> str:
    """Return the key of a workspace that a part of a ref stands for."""
    return part.replace("%2E", ".").replace("%25", "%")


def agent_variables(url: GitUrl, access: GitAccess, env: Mapping[str, str]) -> dict[str, str]:
    """Return the variables with which an agent's own git may push; ``env`` is what the agent has
    besides."""
    if not access.password:
        return {"GIT_SSH_COMMAND": access.ssh_command} if access.ssh_command else {}
    helper = (
        '!f() { [ "$1" != get ] || printf "username=%s\\npassword=%s\\n"'
        ' "$SORTIE_GIT_USERNAME" "$SORTIE_GIT_PASSWORD"; }; f'
    )
    return {
        **_configuration(env, {"credential.helper": "", f"credential.{url.root}.helper": helper}),
        "SORTIE_GIT_USERNAME": access.username,
        "SORTIE_GIT_PASSWORD": access.password,
    }


def _configuration(env: Mapping[str, str], values: Mapping[str, str]) -> dict[str, str]:
    """Return the variables that configure git further than an environment does."""
    told = env.get("GIT_CONFIG_COUNT", "")
    count = int(told) if told.isdecimal() else 0
    found = {"GIT_CONFIG_COUNT": str(count + len(values))}
    for number, (key, value) in enumerate(values.items(), count):
        found |= {f"GIT_CONFIG_KEY_{number}": key, f"GIT_CONFIG_VALUE_{number}": value}
    return found


def git_variables(url: GitUrl, access: GitAccess | None) -> dict[str, str]:
    """Return what the script needs of the access to a remote."""
    if access is None:
        return {}
    found = {
        "SORTIE_GIT_USERNAME": access.username,
        "SORTIE_GIT_PASSWORD": access.password,
        "SORTIE_GIT_ROOT": url.root if url.is_http else "",
        "SORTIE_GIT_SSH": access.ssh_command,
    }
    return {name: value for name, value in found.items() if value}


def complaint_in(complaint: bytes) -> str:
    """Return what git complained of on one line; its last lines say what for."""
    lines = [line.strip() for line in complaint.decode("utf-8", "replace").splitlines()]
    telling = [line for line in lines if line and not line.startswith(_SAYS_NOTHING)]
    told = "; ".join(telling or filter(None, lines))
    return end_of(NOT_ON_A_LINE.sub("\ufffd", told), _FAULT_LIMIT) or "git said nothing"


def lines_of(said: str) -> list[str]:
    """Return the lines of an answer. Names of files may hold what Python takes for other ends."""
    return said.removesuffix("\n").split("\n") if said else []


def known_in(said: str) -> dict[str, str]:
    """Return what an answer tells, by the first word of each line."""
    return dict(line.partition(" ")[::2] for line in lines_of(said))


def all_in(said: str, word: str) -> tuple[str, ...]:
    """Return the rest of each line that begins with a word."""
    lines = (line.partition(" ") for line in lines_of(said))
    return tuple(rest for first, _, rest in lines if first == word)


def shown_path(path: str) -> str:
    """Return a path as it may be shown: on one line, cut where it is long."""
    return cut(NOT_ON_A_LINE.sub("\ufffd", path), 1000)


def changed_file(text: str) -> ChangedFile:
    """Read a line of ``git diff --numstat``."""
    added, removed, path = text.split("\t", 2) if text.count("\t") >= 2 else ("-", "-", text)
    return ChangedFile(
        path=shown_path(path),
        added=int(added) if added.isdigit() else None,
        removed=int(removed) if removed.isdigit() else None,
    )


def rescued_in(line: str) -> Rescued:
    """Read a line about rescued work."""
    commit, at, ref, subject = [*line.split(" ", 3), "", "", ""][:4]
    issue, _, run = ref.removeprefix("refs/sortie/rescue/").partition("/")
    return Rescued(
        commit=commit,
        at=int(at) if at.isdigit() else 0,
        ref=ref,
        issue=key_of_ref(issue),
        run=run,
        subject=shown_path(subject),
    )


class ObjectReader:
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
