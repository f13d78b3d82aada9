"""What repositories share whose mirror is one directory."""

from __future__ import annotations

from pathlib import Path

from sortie.daemon.repositories import MirrorStates, OpenRepository
from sortie.model.git_urls import parse_git_url
from sortie.model.secrets import unchanged
from sortie.workspaces.git_values import GitAccess
from tests.transports.endings import local_transport
from tests.worker.rig import settings_of
from tests.workspaces.remotes import ENV, make_remote


async def test_a_mirror_is_cleaned_once_for_all_that_use_it(tmp_path: Path) -> None:
    """Rules may use one repository in several ways. What git has under way in the mirror for one of
    them stays there when another one fetches for the first time."""
    url = parse_git_url(str(make_remote(tmp_path / "forge")))
    (tmp_path / "root").mkdir()
    mirrors: MirrorStates = {}
    async with local_transport("children") as transport:
        one, other = (
            OpenRepository(
                settings_of(repository={"url": url.text, "author_name": name}),
                url,
                None,
                unchanged,
                mirrors,
            )
            .on_host("local", transport)
            .at(str(tmp_path / "root"))
            for name in ("one", "other")
        )
        await one.fetch(GitAccess(), ENV)
        under_way = Path(one.mirror, "sortie-index-T-1.lock")
        under_way.touch()

        await other.fetch(GitAccess(), ENV)

    assert other.mirror == one.mirror
    assert under_way.exists()
