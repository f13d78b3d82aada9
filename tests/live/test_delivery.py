"""The real Claude Code mends the demo's failing test, on this machine and on a host.

Its model is scripted, so that no account is needed and nothing is paid; all else is real.
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path

import pytest

from sortie.cli.demo.project import make_project
from tests.e2e.conftest import Start
from tests.e2e.forged import Forged, forge_of
from tests.e2e.place import PROMPT, Place
from tests.e2e.remote import Fleet
from tests.forges.service import PATH, TOKEN
from tests.live.claude import KEY, Claude, said_by_user, told_in
from tests.live.model_answers import Answer, tool
from tests.live.model_server import ModelServer, model_server
from tests.transports.ssh.sshd import requires_sshd
from tests.workspaces.git_http import git_server
from tests.workspaces.remotes import git

pytestmark = [pytest.mark.full, pytest.mark.timeout(1200)]

ISSUE = "DEMO-2"
WRONG = "sed -i 's/ + 1$/ + 2/' count_lines.py && git commit -qam 'Count more'"
RIGHT = "sed -i 's/return .*/return len(text.splitlines())/' count_lines.py"
DONE = "echo done > .sortie/status"
LAST = "I have mended it: a line end at the end begins no line any more."


@pytest.fixture
def server() -> Iterator[ModelServer]:
    with model_server() as models:
        yield models


@pytest.fixture(params=["local", pytest.param("ssh", marks=requires_sshd)])
def claude(request: pytest.FixtureRequest, place: Place, server: ModelServer) -> Claude:
    """Give Claude Code on this machine, and on a host."""
    is_remote = request.param == "ssh"
    fleet: Fleet | None = request.getfixturevalue("fleet") if is_remote else None
    return Claude.at(place, server, fleet)


@pytest.fixture
def forged(tmp_path: Path) -> Iterator[Forged]:
    """Have the repository of the demo at a forge."""
    root = tmp_path / "forge"
    (root / PATH).parent.mkdir(parents=True)
    project = make_project(root)
    assert project is not None
    git(project, "config", "http.receivepack", "true")
    (root / PATH).with_suffix(".git").symlink_to(project)
    with (
        git_server(root, TOKEN) as remote,
        forge_of("github", project, f"{remote.url}/{PATH}.git") as forged,
    ):
        yield forged


def add_issue(place: Place) -> None:
    """Write the demo's issue, without what is for simulated agents."""
    origin = files("sortie.cli.demo").joinpath("directory", "issues", f"{ISSUE}.md")
    lines = origin.read_text(encoding="utf-8").splitlines()
    kept = [line for line in lines if not line.startswith("sim:")]
    (place.issues / f"{ISSUE}.md").write_text("\n".join(kept) + "\n")


async def test_what_fails_is_mended_and_proposed(
    claude: Claude, start: Start, forged: Forged
) -> None:
    """First the agent is wrong, and the end of what ``verify`` said is its next prompt; then it is
    right, and its work becomes a pull request that says so."""
    place = claude.place
    blocks = {**forged.blocks, "verify": {"commands": ["sh check.sh"]}}
    claude.workflow(PROMPT, blocks=blocks)
    add_issue(place)
    script = claude.script(
        tool("Bash", command=f"{WRONG} && {DONE}"),
        Answer(text="I have mended it."),
        tool("Bash", command=f"{RIGHT} && {DONE}"),
        Answer(text=LAST),
    )

    async with start(FORGE_TOKEN=TOKEN, **claude.environ()) as daemon:
        await daemon.line("issue.moved", issue=ISSUE, lifecycle="handoff", within=300)
        verified = [(line["command"], line["ok"]) for line in daemon.lines("command.verified")]
        stages = [line["stage"] for line in daemon.lines("delivery.advanced")]
        log = str(daemon.log)
    (run,) = await place.history()

    first, _, second, last = (request.body for request in script.requests)
    assert "Mend `count_lines.py`; the test is right." in said_by_user(first)[-1]
    prompt = said_by_user(second)[-1]
    assert "This command was run in a clean clone of your commit, and failed (exit 1)" in prompt
    assert "AssertionError: a line end at the end begins no line" in prompt
    assert "I have mended it." in told_in(second)  # it is one conversation
    assert prompt in said_by_user(last)
    assert verified == [("sh check.sh", False), ("sh check.sh", True)]
    assert stages == ["finished", "dropped", "finished", "proven", "pushed", "delivered"]

    branch = f"sortie/{ISSUE}"
    head = git(forged.bare, "rev-parse", branch)
    assert git(forged.bare, "rev-parse", "main") == forged.base
    assert git(forged.bare, "rev-list", "--count", f"main..{branch}") == "2"  # its own, and left
    tree = place.root / "tree"
    git(place.root, "clone", "-q", "-b", branch, str(forged.bare), str(tree))
    subprocess.run(["python3", "test_count_lines.py"], cwd=tree, check=True)

    (request,) = forged.service.requests
    assert (request.branch, request.base, request.labels) == (branch, "main", ["sortie"])
    assert request.title == f"{ISSUE}: Count lines rightly"
    assert f"> {LAST}" in request.body
    assert f"Verified in a clean clone of `{head[:12]}`" in request.body
    assert "- `sh check.sh`: exit 0" in request.body
    state, sentence = forged.service.statuses[head, "sortie/verify"]
    assert (state, sentence) == ("success", "1 command succeeded (clean)")

    assert (run["status"], run["turns"]) == ("succeeded", 2)
    assert run["delivery"]["evidence"]["commit"] == head
    assert run["delivery"]["pull_request"]["number"] == request.number
    told = "".join(path.read_text() for path in place.issues.rglob("*") if path.is_file())
    assert told.count(f"/pulls/{request.number}") == 1
    assert TOKEN not in log + str([one.body for one in script.requests])
    assert KEY not in log
