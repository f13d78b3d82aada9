"""A repository with files of git LFS and a submodule, both behind the credential."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.e2e.conftest import Start
from tests.e2e.forged import SETTINGS, Forged, forge_of, make_bare, until_all_are_handed_off
from tests.e2e.place import PROMPT, Place
from tests.e2e.remote import Fleet
from tests.forges.service import PATH, TOKEN
from tests.transports.ssh.sshd import requires_sshd
from tests.workspaces.git_http import GitServer, git_server
from tests.workspaces.git_ssh import GitHost
from tests.workspaces.remotes import add_submodule, git, requires_git_lfs, use_lfs

pytestmark = [requires_git_lfs, pytest.mark.portless]

WORK = """
grep -q first a.bin && grep -q 1 lib/version || exit
echo second >a.bin
git -C lib checkout -q {new}
git commit -qam 'Move it'
echo third >b.bin
"""
VERIFY = "grep -q second a.bin && grep -q third b.bin && grep -q 2 lib/version"


def prepare(forged: Forged, server: GitServer) -> dict[str, dict[str, object]]:
    """Give the repository both; return the blocks of the workflow."""
    use_lfs(forged.bare)
    _, new = add_submodule(forged.bare)
    for path in (forged.bare / "lfs/objects").rglob("*"):
        if path.is_file():
            server.files[path.name] = path.read_bytes()
    return {
        **{name: dict(block) for name, block in {**SETTINGS, **forged.blocks}.items()},
        "repository": {**forged.blocks["repository"], "lfs": True, "submodules": True},
        "verify": {"commands": [VERIFY]},
        "hooks": {"before_run": WORK.format(new=new)},
    }


def require_delivered(forged: Forged, server: GitServer, name: str) -> None:
    """Fail unless the pull request has all of it, and the server the files."""
    assert {b"first\n", b"second\n", b"third\n"} == set(server.files.values())
    branch = f"sortie/{name}"
    assert "version https://git-lfs" in git(forged.bare, "show", f"{branch}:b.bin")
    assert [request.branch for request in forged.service.requests] == [branch]
    assert (git(forged.bare, "rev-parse", branch), "sortie/verify") in forged.service.statuses


@pytest.mark.parametrize(
    "where", ["here", pytest.param("far", marks=[requires_sshd, pytest.mark.full])]
)
async def test_both_are_delivered(
    place: Place, start: Start, tmp_path: Path, request: pytest.FixtureRequest, where: str
) -> None:
    """Checked out, changed, verified in a clean clone, pushed; the credential is nowhere."""
    fleet: Fleet | None = request.getfixturevalue("fleet") if where == "far" else None
    root = tmp_path / "forge"
    bare = make_bare(root)
    with (
        git_server(root, TOKEN) as server,
        forge_of("github", bare, f"{server.url}/{PATH}.git") as forged,
    ):
        blocks = prepare(forged, server)
        if fleet is None:
            place.write_workflow(PROMPT, **blocks)
        else:
            fleet.add("far")
            fleet.write_workflow(PROMPT, **blocks)
        place.add_issue("T-1")

        async with start(FORGE_TOKEN=TOKEN):
            await until_all_are_handed_off(place, ["T-1"])

        require_delivered(forged, server, "T-1")
    for file in (path for path in tmp_path.rglob("*") if path.is_file()):
        assert root in file.parents or TOKEN.encode() not in file.read_bytes(), file


@requires_sshd
@pytest.mark.parametrize("form", ["ssh", pytest.param("scp", marks=pytest.mark.full)])
async def test_so_they_are_over_ssh(place: Place, start: Start, tmp_path: Path, form: str) -> None:
    """The host tells where files of LFS are, and how they are had there."""
    root = tmp_path / "forge"
    bare = make_bare(root)
    host = GitHost(tmp_path, root)
    host.use_own_keys()
    host.sshd.start()
    with (
        git_server(root, "password-of-lfs") as server,
        forge_of("github", bare, host.url("scp", f"{PATH}.git")) as forged,
    ):
        host.serve_lfs(server.url, "me", "password-of-lfs")
        blocks = prepare(forged, server)
        blocks["repository"]["url"] = host.url(form, f"{PATH}.git")
        place.write_workflow(PROMPT, **blocks)
        place.add_issue("T-1")

        async with start(FORGE_TOKEN=TOKEN, PATH=host.path):
            await until_all_are_handed_off(place, ["T-1"])

        require_delivered(forged, server, "T-1")
    assert host.sshd.close() == []
