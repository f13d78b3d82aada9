"""What becomes of the work of a run where something stands in its way; on a bare repository."""

from __future__ import annotations

import json
import re
import signal
from collections.abc import Mapping
from pathlib import Path

import pytest
import trio

from tests.e2e.conftest import Start
from tests.e2e.place import PATIENCE, PROMPT, Place
from tests.e2e.remote import SIMULATOR
from tests.workspaces.remotes import commit, git, make_remote, requires_git_lfs, use_lfs

SECRET = "token-that-nobody-may-see"
AGENT = """\
#!/bin/sh
# An agent that does what the file DO says, each turn with the number of the turn in $TURN.
case " $* " in *" chat "*) ;; *) exec {simulator} "$@" ;; esac
printf "%s\n" "$*" >>{root}/prompts; echo "=====" >>{root}/prompts
TURN=$(grep -c '^=====$' {root}/prompts); export TURN
sh -ec "$(cat {root}/DO)" >&2 || exit
mkdir -p .sortie; echo "${{WORD:-done}}" >.sortie/status
KIRO_SIM_NOTE=0 exec {simulator} "$@"
"""


class Ways:
    """A place whose agent does what a script says, and a bare repository."""

    def __init__(self, place: Place) -> None:
        self.place = place
        self.bare = make_remote(place.root / "forge")
        self.seed = place.root / "forge/seed"
        program = place.root / "agent"
        program.write_text(AGENT.format(root=place.root, simulator=SIMULATOR))
        program.chmod(0o755)
        self.write()
        place.add_issue("T-1")

    def write(self, **blocks: Mapping[str, object]) -> None:
        """Write the workflow with some blocks changed."""
        known: dict[str, dict[str, object]] = {
            "repository": {"url": str(self.bare)},
            "agent": {"command": str(self.place.root / "agent"), "max_retry_backoff_ms": 100},
        }
        for name, block in blocks.items():
            known[name] = {**known.get(name, {}), **block}
        self.place.write_workflow(PROMPT, **known)

    def do(self, script: str) -> None:
        """Say what the agent does from now on."""
        (self.place.root / "DO").write_text(script)

    def prompts(self) -> list[str]:
        """Return what the agent was told, turn by turn."""
        return (self.place.root / "prompts").read_text().split("=====\n")[:-1]

    def pushed(self, what: str = "sortie/T-1") -> str:
        """Return a commit at the remote, "" where it is not there."""
        return git(self.bare, "rev-parse", "-q", "--verify", what, ok=False)

    def tree(self) -> set[str]:
        """Return the files that were pushed."""
        return set(git(self.bare, "ls-tree", "-r", "--name-only", "sortie/T-1").split())


@pytest.fixture
def ways(place: Place) -> Ways:
    """A place with a repository."""
    return Ways(place)


async def handed_off(place: Place) -> None:
    """Wait until the issue is handed off."""
    with trio.fail_after(PATIENCE):
        while place.state_of("T-1") != "Human Review":
            await trio.sleep(0.05)


async def test_what_fails_is_the_next_prompt(ways: Ways, start: Start) -> None:
    """In a clean clone: what the agent has installed, and git ignores, is not there; what the
    command has printed stands in a fence."""
    ways.write(verify={"commands": ["cat built || { echo it is not built; exit 3; }"]})
    ways.do("echo built >.gitignore; echo x >built; [ $TURN = 1 ] || rm .gitignore")

    async with start():
        await handed_off(ways.place)

    first, second = ways.prompts()
    assert "it is not built" not in first
    assert "in a clean clone of your commit, and failed (exit 3)" in second
    fence = (
        r"<<untrusted text (\w+), from the output of a command>>\n"
        r"(.*?)\n<<end \1>>\n\nMend it\."
    )
    fenced = re.search(fence, second, re.DOTALL)
    assert fenced is not None
    assert fenced[2].endswith("it is not built")
    assert "built" in ways.tree()
    (run,) = await ways.place.history()
    assert run["turns"] == 2
    assert [c["ok"] for c in run["delivery"]["evidence"]["commands"]] == [True]
    assert run["delivery"]["evidence"]["commit"] == ways.pushed()


async def test_an_agent_that_does_not_mend_it_is_held(ways: Ways, start: Start) -> None:
    """After as many rounds as are allowed; nothing is pushed."""
    ways.write(verify={"commands": ["false"], "rounds": 2})
    ways.do("echo $TURN >>out.txt")

    async with start() as daemon:
        held = await daemon.line("issue.held", reason="verification_failed")

    assert len(ways.prompts()) == 3
    assert "sent back to it 2 times" in held["detail"]
    assert ways.pushed() == ""


@pytest.mark.parametrize(
    "what", ["hold", *(pytest.param(word, marks=pytest.mark.full) for word in ("handoff", "Done"))]
)
async def test_nothing_changed(ways: Ways, start: Start, what: str) -> None:
    """The issue is held, or goes where the settings say."""
    ways.write(repository={"no_change": what})
    ways.do("true")

    async with start() as daemon:
        if what == "hold":
            await daemon.line("issue.held", reason="no_change")
        elif what == "handoff":
            await handed_off(ways.place)
        else:
            with trio.fail_after(PATIENCE):
                while ways.place.state_of("T-1") != "Done":
                    await trio.sleep(0.05)

    assert ways.pushed() == ""


async def test_a_secret_is_not_pushed(ways: Ways, start: Start) -> None:
    """Not in a commit below the newest either, until the agent has taken it out."""
    ways.write(server={"auth_token": "$SORTIE_TOKEN"})
    ways.do(f"""
if [ $TURN = 1 ]; then
  echo {SECRET} >config; git add config; git commit -qm config
  git rm -q config; git commit -qm gone; echo 1 >out.txt
else git reset -q --hard origin/main; echo 2 >out.txt; fi
""")

    async with start(SORTIE_TOKEN=SECRET) as daemon:
        await handed_off(ways.place)

    assert "A secret stands in your commits, in config" in ways.prompts()[1]
    assert SECRET not in json.dumps(daemon.log)
    assert SECRET not in git(ways.bare, "log", "-p", "--all")
    assert ways.tree() == {"README", "src/a.py", "out.txt"}


async def test_somebody_else_has_pushed(ways: Ways, start: Start) -> None:
    """Their commit stays: the agent merges it."""
    ways.do(f"""
if [ $TURN = 1 ]; then
  echo mine >mine; git add mine; git commit -qm mine
  git -C {ways.seed} checkout -q -b theirs; echo theirs >{ways.seed}/theirs
  git -C {ways.seed} add theirs; git -C {ways.seed} -c user.name=A -c user.email=a@b commit -qm t
  git -C {ways.seed} push -q origin theirs:sortie/T-1
else git merge -q origin/sortie/T-1 -m merged; fi
""")

    async with start():
        await handed_off(ways.place)

    assert "Somebody has pushed to sortie/T-1 meanwhile" in ways.prompts()[1]
    assert {"mine", "theirs"} <= ways.tree()


async def test_leftovers_can_be_refused(ways: Ways, start: Start) -> None:
    """Then the agent has to commit by itself."""
    ways.write(repository={"leftovers": "refuse"})
    ways.do("echo 1 >out.txt; [ $TURN = 1 ] || { git add -A; git commit -qm mine; }")

    async with start():
        await handed_off(ways.place)

    assert "These files are in no commit:\n- out.txt" in ways.prompts()[1]
    assert git(ways.bare, "log", "-1", "--format=%s", "sortie/T-1") == "mine"


async def test_a_remote_that_is_away_costs_no_agent(ways: Ways, start: Start) -> None:
    """The work is done once; the push is tried again until it succeeds."""
    away = ways.bare.with_name("away.git")
    ways.do(f"echo 1 >out.txt; mv {ways.bare} {away}")

    async with start() as daemon:
        await daemon.line("run.finished", error_kind="delivery_failed")
        await daemon.line("run.finished", nth=2)
        away.rename(ways.bare)
        await handed_off(ways.place)

    assert len(ways.prompts()) == 1
    assert "out.txt" in ways.tree()


async def test_the_next_run_is_told_what_is_new(ways: Ways, start: Start) -> None:
    """It goes on with the branch, and the same branch is pushed."""
    ways.do("echo $TURN >>out.txt")
    async with start():
        await handed_off(ways.place)
        commit(ways.seed, "more", "1\n")
        git(ways.seed, "push", "-q", "origin", "HEAD:main")
        await trio.sleep(10)  # for so long a fetch is good
        ways.place.add_issue("T-1")
        with trio.fail_after(PATIENCE):
            while len(ways.prompts()) < 2:
                await trio.sleep(0.05)
        await handed_off(ways.place)

    second = ways.prompts()[1]
    assert (
        "The branch sortie/T-1 is 1 commit behind origin/main" in second or "behind" not in second
    )
    assert git(ways.bare, "rev-list", "--count", "main..sortie/T-1") == "2"


async def test_unpushed_work_is_rescued_when_the_issue_is_over(ways: Ways, start: Start) -> None:
    """And can be put into a clone as a branch."""
    ways.do("WORD=blocked; echo 1 >out.txt; mkdir -p .sortie; echo blocked >.sortie/status; exit 1")
    async with start() as daemon:
        await daemon.line("run.finished")
        ways.place.add_issue("T-1", state="Done")
        await daemon.line("workspace.removed")

    listed = await ways.place.sortie("rescue", "list", "--format", "json")
    shown = await ways.place.sortie("rescue", "show", "T-1")
    done = await ways.place.sortie("rescue", "restore", "T-1", "--into", str(ways.seed))

    (kept,) = json.loads(listed.out)
    assert kept["issue"] == "T-1"
    assert "+1" in shown.out
    assert done.code == 0, done
    branch = f"rescued/T-1-{kept['run_id']}"
    assert git(ways.seed, "show", f"{branch}:out.txt") == "1"
    assert not Path(ways.place.workspaces, "T-1").exists()


@requires_git_lfs
async def test_rescued_files_of_lfs_are_restored(ways: Ways, start: Start) -> None:
    """Into the store of the clone, from where a checkout takes them."""
    use_lfs(ways.bare)
    ways.write(repository={"lfs": True})
    ways.do("echo second >a.bin; git commit -qam mine; echo third >b.bin; exit 1")
    async with start() as daemon:
        await daemon.line("run.finished")
        ways.place.add_issue("T-1", state="Done")
        await daemon.line("workspace.removed")

    done = await ways.place.sortie("rescue", "restore", "T-1", "--into", str(ways.seed))

    assert done.code == 0, done
    (branch,) = git(ways.seed, "branch", "--list", "rescued/*", "--format=%(refname:short)").split()
    git(ways.seed, "checkout", "-q", branch)
    found = {name: (ways.seed / name).read_text() for name in ("a.bin", "b.bin")}
    assert found == {"a.bin": "second\n", "b.bin": "third\n"}


async def test_what_was_delivered_is_seen_after_the_handoff(ways: Ways, start: Start) -> None:
    """Also where the daemon was killed in between, so that a run followed that had nothing left to
    do: what was asked for, the branch and the diff, by pages, API and commands, for good."""
    place = ways.place
    ways.write(hooks={"after_run": "[ -e go ] || sleep 60", "timeout_ms": 90_000})
    place.write_text(place.workflow.read_text().replace("[ -e go ]", f"[ -e {place.root}/go ]"))
    ways.do("echo written-by-the-agent >out.txt")
    issue = place.add_issue("T-1")
    issue.write_text(issue.read_text().replace("Nothing special.", "It is <b>broken</b>."))
    async with start() as daemon:
        await daemon.line("delivery.advanced", stage="delivered")
        daemon.signal(signal.SIGKILL)
        await daemon.exit_code()
    (place.root / "go").touch()

    for life in (1, 2):
        async with start() as daemon:
            await daemon.line("daemon.started")
            await handed_off(place)
            with trio.fail_after(PATIENCE):
                while not (shown := (await daemon.state())["handed_off"]):
                    await trio.sleep(0.05)
            (moved,) = shown
            asked = json.loads((await daemon.get("/api/v1/issues/T-1")).text)
            page = (await daemon.get("/issues/T-1")).text
            table = (await place.sortie("status")).out
        assert (moved["issue_identifier"], moved["state"]) == ("T-1", "Human Review"), life
        assert (moved["branch"], moved["added"], moved["removed"]) == ("sortie/T-1", 1, 0)
        assert asked["standing"] == "handed_off"
        assert (asked["title"], asked["description"]) == ("Title of T-1", "It is <b>broken</b>.")
        assert "It is &lt;b&gt;broken&lt;/b&gt;." in page
        assert '<span class="added">+written-by-the-agent</span>' in page
        assert "branch sortie/T-1" in table

    assert len(ways.prompts()) == 1
    first, second = await place.history()
    assert first["delivery"] == second["delivery"]
    assert second["description"] == "It is <b>broken</b>."
    told = await place.sortie("explain", "T-1")
    assert "asks for: It is <b>broken</b>." in told.out
