"""A bare repository as a forge works on it: merging, squashing, rebasing, without a work tree."""

from __future__ import annotations

import os
import subprocess
import tempfile
from contextlib import suppress
from pathlib import Path

from tests.workspaces.remotes import ENV, WHO, git


class BareRepository:
    """The repository of a forge; what is known of two commits is asked of git once."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._trees: dict[tuple[str, str], str | None] = {}
        self._merged: dict[tuple[str, str], str] = {}
        self._behind: dict[tuple[str, str], int] = {}

    def heads(self) -> dict[str, str]:
        """Return the commits of all branches.

        They are read from git's files, as a forge looks at them with each request. Nothing packs
        them here.
        """
        root = f"{self.path}/refs/heads/"
        found = {}
        for directory, _, names in os.walk(root):
            for name in names:
                path = os.path.join(directory, name)
                if not name.endswith(".lock"):
                    with suppress(FileNotFoundError), open(path) as file:  # deleted meanwhile
                        found[path.removeprefix(root)] = file.read().strip()
        return found

    def has(self, commit: str) -> bool:
        """Tell whether there is such a commit."""
        return git(self.path, "cat-file", "-t", commit, ok=False) == "commit"

    def merged_tree(self, base: str, head: str) -> str | None:
        """Return the tree of both merged, None where they conflict."""
        if (base, head) not in self._trees:
            words = ["git", *WHO, "-C", str(self.path), "merge-tree", "--write-tree", base, head]
            done = subprocess.run(words, check=False, capture_output=True, text=True, env=ENV)
            assert done.returncode in (0, 1), done.stderr
            self._trees[base, head] = done.stdout.split()[0] if done.returncode == 0 else None
        return self._trees[base, head]

    def behind(self, base: str, head: str) -> int:
        """Return how many commits of a base are missing in a head."""
        if (base, head) not in self._behind:
            count = git(self.path, "rev-list", "--count", f"{head}..{base}")
            self._behind[base, head] = int(count)
        return self._behind[base, head]

    def merge_base(self, base: str, head: str) -> str:
        """Return where two parted."""
        return git(self.path, "merge-base", base, head)

    def parents(self, commit: str) -> list[str]:
        """Return the parents of a commit."""
        return git(self.path, "rev-list", "--parents", "-n1", commit).split()[1:]

    def merged(self, base: str, head: str) -> str:
        """Return a commit that merges two; nothing points to it."""
        if (base, head) not in self._merged:
            tree = self.merged_tree(base, head)
            assert tree is not None
            made = git(self.path, "commit-tree", tree, "-p", base, "-p", head, "-m", "Merged")
            self._merged[base, head] = made
        return self._merged[base, head]

    def merge(self, base: str, head: str, method: str, message: str) -> str:
        """Merge the head of a branch into another branch and return the commit of that."""
        onto = self.heads()[base]
        tree = self.merged_tree(onto, head)
        assert tree is not None
        if method == "rebase":
            made = self.rebased(head, onto)
        else:
            parents = ["-p", onto] if method == "squash" else ["-p", onto, "-p", head]
            made = git(self.path, "commit-tree", tree, *parents, "-m", message)
        self.move(base, made, onto)
        return made

    def merge_into(self, branch: str, base: str) -> str:
        """Merge a base into a branch, as "update branch" does, and return the new head."""
        heads = self.heads()
        tree = self.merged_tree(heads[base], heads[branch])
        assert tree is not None
        parents = ["-p", heads[branch], "-p", heads[base]]
        message = f"Merge branch '{base}' into {branch}"
        made = git(self.path, "commit-tree", tree, *parents, "-m", message)
        self.move(branch, made, heads[branch])
        return made

    def rebased(self, head: str, onto: str) -> str:
        """Return the commit that a head becomes on another one; nothing points to it yet."""
        with tempfile.TemporaryDirectory() as place:
            git(place, "clone", "-q", "--shared", "--no-checkout", str(self.path), "tree")
            tree = Path(place, "tree")
            git(tree, "checkout", "-q", "--detach", head)
            git(tree, "rebase", "-q", onto)
            made = git(tree, "rev-parse", "HEAD")
            git(tree, "push", "-q", "origin", f"{made}:refs/rebased/{made}")
        return made

    def move(self, branch: str, to: str, known: str) -> None:
        """Move a branch that is at a known commit."""
        git(self.path, "update-ref", f"refs/heads/{branch}", to, known)

    def delete(self, branch: str) -> bool:
        """Delete a branch; False where there is none."""
        if branch not in self.heads():
            return False
        git(self.path, "update-ref", "-d", f"refs/heads/{branch}")
        return True
