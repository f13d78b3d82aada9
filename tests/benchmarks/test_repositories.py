"""What a workspace of a repository costs: the part that is the same on every machine."""

from __future__ import annotations

from tests.benchmarks.repositories import measure_costs


def test_a_workspace_takes_little_beside_its_files() -> None:
    """The objects stay in the mirror: ``.git`` takes no twentieth of the repository, and no more
    than that of ``git clone --reference``; nothing but the files is checked out."""
    costs = measure_costs(megabytes=5, files=250, workspaces=3)

    (theirs,) = costs.theirs
    for ours in (*costs.ours, costs.after_removal):
        assert ours.git <= costs.size / 20
        assert ours.git <= theirs.git
        assert ours.files == theirs.files
