"""Workspace roots of two daemons, of which one lies in the other."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from sortie.daemon.locks import HeldElsewhere
from sortie.daemon.root_lock import RootLock

INNER = "ABC-1/deep/workspaces"
"""Where a root lies in a workspace of another one."""


def roots(place: Path) -> tuple[str, str]:
    """Return an outer and an inner root."""
    inner = place / "outer" / INNER
    inner.mkdir(parents=True)
    return str(place / "outer"), str(inner)


def test_a_root_inside_another_daemons_is_refused(tmp_path: Path) -> None:
    """The holder is named; once that is gone, nothing of it is in the way."""
    outer, inner = roots(tmp_path)

    with RootLock(inner) as second:
        with RootLock(outer) as first:
            first.ensure()
            with pytest.raises(HeldElsewhere) as refused:
                second.ensure()
        second.ensure()

    assert f"{inner} lies inside {outer}, the workspace root of another daemon" in str(
        refused.value
    )
    assert f"pid {os.getpid()}, since 2" in str(refused.value)


def test_a_root_that_holds_another_daemons_is_refused(tmp_path: Path) -> None:
    """Also where the inner one was there first, and the outer one is named by a link."""
    outer, inner = roots(tmp_path)
    (tmp_path / "way").symlink_to(outer)

    with RootLock(str(tmp_path / "way")) as second:
        with RootLock(inner) as first:
            first.ensure()
            with pytest.raises(HeldElsewhere) as refused:
                second.ensure()
        second.ensure()

    assert f"holds {inner}, the workspace root of another daemon" in str(refused.value)


def test_a_root_that_is_held_already_is_not_searched_again(tmp_path: Path) -> None:
    """What an agent puts into its workspace later stops no daemon that is at work."""
    outer, inner = roots(tmp_path)

    with RootLock(outer) as mine:
        mine.ensure()
        Path(inner, "@daemon.lock").touch()
        mine.ensure()
