"""A second session judges the work before it is pushed; on a bare repository."""

from __future__ import annotations

import json
import os
import re
import signal
import sys
from collections.abc import Mapping

import pytest
import trio

from tests.agents.acp.scripted import PROGRAM as SCRIPTED
from tests.e2e.conftest import Start
from tests.e2e.place import PATIENCE, PROMPT, Json, Place
from tests.e2e.remote import SIMULATOR
from tests.workspaces.remotes import git, make_remote

pytestmark = pytest.mark.portless

AGENT = """\
#!/bin/sh
# An agent that does what the file DO says, and as reviewer what REVIEW says: its last message is
# what REVIEW prints. Each is told in $TURN how often it was asked.
case " $* " in *" chat "*) ;; *) exec {simulator} "$@" ;; esac
case $PWD in */@review/*) who=review; script=REVIEW ;; *) who=worker; script=DO ;; esac
if [ "$who" = review ] && [ -t 0 ]; then exit 9; fi
printf "%s\\n" "$PWD" "$*" >>{root}/$who; cat >>{root}/$who; echo "=====" >>{root}/$who
TURN=$(grep -c '^=====$' {root}/$who); export TURN
if [ "$who" = review ]; then
  KIRO_SIM_SAY=$(sh -ec "$(cat {root}/REVIEW)"); export KIRO_SIM_SAY
else
  sh -ec "$(cat {root}/DO)" >&2 || exit
  mkdir -p .sortie; echo "${{WORD:-done}}" >.sortie/status
fi
KIRO_SIM_NOTE=0 exec {simulator} "$@"
"""
APPROVES = """echo '{"verdict": "approve", "findings": []}'"""


def asks(text: str, **more: object) -> str:
    """Return a script that asks for a change."""
    finding = {"severity": "must", "path": "out.txt", "line": 1, "text": text} | more
    return f"echo '{json.dumps({'verdict': 'request_changes', 'findings': [finding]})}'"


class Reviewed:
    """A place whose agents do what scripts say, and a bare repository."""

    def __init__(self, place: Place) -> None:
        self.place = place
        self.bare = make_remote(place.root / "forge")
        program = place.root / "agent"
        program.write_text(AGENT.format(root=place.root, simulator=SIMULATOR))
        program.chmod(0o755)
        self.write()
        self.do("echo $TURN >>out.txt")
        place.add_issue("T-1")

    def write(self, **blocks: Mapping[str, object]) -> None:
        """Write the workflow with some blocks changed."""
        known: dict[str, dict[str, object]] = {
            "repository": {"url": str(self.bare)},
            "agent": {"command": str(self.place.root / "agent"), "max_retry_backoff_ms": 100},
            "self_review": {},
        }
        for name, block in blocks.items():
            known[name] = {**known.get(name, {}), **block}
        self.place.write_workflow(PROMPT, **known)

    def do(self, script: str) -> None:
        """Say what the agent does from now on."""
        (self.place.root / "DO").write_text(script)

    def judge(self, script: str) -> None:
        """Say what the reviewer does, and prints as its last message."""
        (self.place.root / "REVIEW").write_text(script)

    def told(self, who: str) -> list[str]:
        """Return what the worker or the review was told, turn by turn."""
        path = self.place.root / who
        return path.read_text().split("=====\n")[:-1] if path.exists() else []

    def pushed(self) -> str:
        """Return the commit at the remote, "" where it is not there."""
        return git(self.bare, "rev-parse", "-q", "--verify", "sortie/T-1", ok=False)

    def tree(self) -> set[str]:
        """Return the files that were pushed."""
        return set(git(self.bare, "ls-tree", "-r", "--name-only", "sortie/T-1").split())

    async def run(self) -> Json:
        """Return what is recorded of the one run."""
        (run,) = await self.place.history()
        return run


@pytest.fixture
def reviewed(place: Place) -> Reviewed:
    """A place with a repository and a reviewer."""
    return Reviewed(place)


async def handed_off(place: Place) -> None:
    """Wait until the issue is handed off."""
    with trio.fail_after(PATIENCE):
        while place.state_of("T-1") != "Human Review":
            await trio.sleep(0.05)


async def test_an_approved_commit_is_pushed(reviewed: Reviewed, start: Start) -> None:
    """It was judged in a clone that is gone, with tools that only read; the verdict is kept."""
    reviewed.judge(f"cat out.txt >&2; {APPROVES}")

    async with start() as daemon:
        await handed_off(reviewed.place)
        told = await daemon.line("review.finished")

    (asked,) = reviewed.told("review")
    assert "--trust-tools=read,grep,glob" in asked
    assert "--trust-all-tools" not in asked
    assert "+1\n" in asked
    assert len(reviewed.told("worker")) == 1
    run = await reviewed.run()
    review = run["delivery"]["review"]
    assert (review["verdict"], review["commit"]) == ("approve", reviewed.pushed())
    assert (told["verdict"], told["level"]) == ("approve", "info")
    assert list((reviewed.place.workspaces / "@review").iterdir()) == []
    assert run["turns"] == 1
    assert run["credits"] == pytest.approx(0.1)  # of both sessions


async def test_what_is_asked_for_is_the_next_prompt(reviewed: Reviewed, start: Start) -> None:
    """The second commit is judged anew, and its reviewer knows what was asked for."""
    reviewed.judge(f"[ $TURN = 1 ] && {asks('say `two` $(touch pwned) {{ x }}')} || {APPROVES}")

    async with start() as daemon:
        await handed_off(reviewed.place)
        first = await daemon.line("review.finished")
        second = await daemon.line("review.finished", nth=2)

    _, mending = reviewed.told("worker")
    assert re.search(
        r"\n1\. must, out\.txt:1:\n<<untrusted text (\w+), from a review by another agent>>\n"
        r"say `two` \$\(touch pwned\) \{\{ x \}\}\n<<end \1>>",
        mending,
    )
    asked = reviewed.told("review")[1].partition("- must, out.txt:1: ")[2].splitlines()
    assert asked[0].startswith("<<untrusted text ")
    assert asked[1] == "say `two` $(touch pwned) {{ x }}"
    assert (first["verdict"], second["verdict"]) == ("request_changes", "approve")
    run = await reviewed.run()
    assert run["turns"] == 2
    assert run["delivery"]["review"]["rounds"] == 1
    assert run["delivery"]["review"]["commit"] == reviewed.pushed()
    assert "pwned" not in reviewed.tree()


async def test_open_findings_hold_nothing_back(reviewed: Reviewed, start: Start) -> None:
    """After as many rounds as are allowed the work is pushed, and the findings are kept."""
    reviewed.write(self_review={"rounds": 1})
    reviewed.judge(asks("never good enough"))

    async with start():
        await handed_off(reviewed.place)

    assert len(reviewed.told("worker")) == len(reviewed.told("review")) == 2
    review = (await reviewed.run())["delivery"]["review"]
    assert (review["verdict"], review["rounds"]) == ("request_changes", 1)
    assert review["findings"] == [
        {"severity": "must", "path": "out.txt", "line": 1, "text": "never good enough"}
    ]
    shown = await reviewed.place.sortie("diff", "T-1")
    assert "changes requested\nfinding: must, out.txt:1: never good enough\n" in shown.out


async def test_an_agent_that_leaves_its_commit_is_asked_once(
    reviewed: Reviewed, start: Start
) -> None:
    """Its commit is not judged again, and goes on its way with what is open."""
    reviewed.do("[ $TURN != 1 ] || echo 1 >out.txt")
    reviewed.judge(asks("mistaken"))

    async with start():
        await handed_off(reviewed.place)

    assert len(reviewed.told("worker")) == 2
    assert len(reviewed.told("review")) == 1
    review = (await reviewed.run())["delivery"]["review"]
    assert (review["verdict"], review["commit"]) == ("request_changes", reviewed.pushed())


async def test_a_verdict_is_kept_while_the_remote_is_away(reviewed: Reviewed, start: Start) -> None:
    """The run that goes on asks neither the agent nor the reviewer."""
    away = reviewed.bare.with_name("away.git")
    reviewed.judge(f"mv {reviewed.bare} {away}; {APPROVES}")

    async with start() as daemon:
        await daemon.line("run.finished", error_kind="delivery_failed")
        away.rename(reviewed.bare)
        await handed_off(reviewed.place)

    assert len(reviewed.told("worker")) == len(reviewed.told("review")) == 1


async def test_garbage_is_asked_for_again_and_is_no_verdict(
    reviewed: Reviewed, start: Start
) -> None:
    """It is never told as an approval, and holds nothing back."""
    reviewed.judge("echo 'Looks good to me, I approve.'")

    async with start() as daemon:
        await handed_off(reviewed.place)
        told = await daemon.line("review.finished")

    _, again = reviewed.told("review")
    assert "Answer once more, in this form only" in again
    assert "out.txt" not in again
    assert (told["level"], told["verdict"]) == ("warning", "none")
    assert "exactly one block of JSON" in told["reason"]
    review = (await reviewed.run())["delivery"]["review"]
    assert (review["verdict"], review["reason"]) == ("none", told["reason"])
    assert reviewed.pushed() == review["commit"]
    logs = await reviewed.place.sortie("logs", "T-1")
    assert "reviewer: turn 2 of 2 began" in logs.out
    assert "review of " in logs.out


async def test_a_reviewer_that_hangs_is_ended(reviewed: Reviewed, start: Start) -> None:
    """With all that it has started; the work goes on its way."""
    reviewed.write(self_review={"timeout_ms": 8000})
    reviewed.judge(f"sleep 600 & touch {reviewed.place.root}/hangs; sleep 600")

    async with start() as daemon:
        await reviewed.place.until_there("hangs")
        await handed_off(reviewed.place)
        told = await daemon.line("review.finished")
        assert [p for p in reviewed.place.programs() if "sleep" in p] == []

    assert "longer than self_review.timeout_ms (8 s)" in told["reason"]
    assert reviewed.tree() == {"README", "src/a.py", "out.txt"}


async def test_what_a_reviewer_changes_is_thrown_away(reviewed: Reviewed, start: Start) -> None:
    """Files, commits and branches of its clone, a process that it leaves there, and what it would
    have others read in place of the commit."""
    reviewed.judge(f"""
echo bad >out.txt; echo bad >bad; git add -A; git -c user.name=A -c user.email=a@b commit -qm bad
git push -q origin HEAD:sortie/T-1 2>/dev/null || :
(setsid sleep 600 >/dev/null 2>&1 &) </dev/null
mirror=$(ls -d {reviewed.place.workspaces}/@repositories/*.git)
git --git-dir="$mirror" fetch -q "$PWD" HEAD:refs/bad
git --git-dir="$mirror" replace "$(git rev-parse HEAD~)" "$(git rev-parse HEAD)"
{APPROVES}
""")

    async with start():
        await handed_off(reviewed.place)
        assert [p for p in reviewed.place.programs() if "sleep" in p] == []

    assert "bad" not in reviewed.tree()
    assert git(reviewed.bare, "show", "sortie/T-1:out.txt") == "1"
    delivery = (await reviewed.run())["delivery"]
    assert (delivery["review"]["verdict"], delivery["files_changed"]) == ("approve", 1)
    assert delivery["review"]["commit"] == reviewed.pushed()


@pytest.mark.parametrize(
    "end", [signal.SIGKILL, pytest.param(signal.SIGTERM, marks=pytest.mark.full)]
)
async def test_a_daemon_that_ends_during_a_review_judges_anew(
    reviewed: Reviewed, start: Start, end: signal.Signals
) -> None:
    """What was verified is not verified again, and the agent is not asked again."""
    reviewed.write(verify={"commands": [f"echo x >>{reviewed.place.root}/verified"]})
    hangs = f"{{ touch {reviewed.place.root}/hangs; sleep 600; }}"
    reviewed.judge(f"[ $TURN = 1 ] && {hangs}; {APPROVES}")

    async with start() as daemon:
        await reviewed.place.until_there("hangs")
        daemon.signal(end)
        await daemon.exit_code()
    async with start():
        await handed_off(reviewed.place)
        assert [p for p in reviewed.place.programs() if "sleep" in p] == []

    assert len(reviewed.told("worker")) == 1
    assert len(reviewed.told("review")) == 2
    assert (reviewed.place.root / "verified").read_text() == "x\n"
    runs = await reviewed.place.history()
    assert runs[-1]["delivery"]["review"]["verdict"] == "approve"
    assert list((reviewed.place.workspaces / "@review").iterdir()) == []


async def test_a_clone_that_a_kill_has_left_goes_with_its_workspace(
    reviewed: Reviewed, start: Start
) -> None:
    """Nobody makes it anew where the issue is finished meanwhile."""
    reviewed.judge(f"touch {reviewed.place.root}/hangs; sleep 600")

    async with start() as daemon:
        await reviewed.place.until_there("hangs")
        daemon.signal(signal.SIGKILL)
        await daemon.exit_code()
    clones = reviewed.place.workspaces / "@review"
    left = [path.name for path in clones.iterdir()]
    reviewed.place.add_issue("T-1", state="Done")
    async with start() as daemon:
        await daemon.line("workspace.removed", issue="T-1")

    assert left == ["T-1"]
    assert list(clones.iterdir()) == []


async def test_an_agent_of_another_kind_reviews_beside_a_living_session(
    reviewed: Reviewed, start: Start
) -> None:
    """By its own default command; the findings go to the session that goes on meanwhile."""
    place = reviewed.place
    programs = place.root / "bin"
    programs.mkdir()
    (programs / "kiro-cli").symlink_to(place.root / "agent")
    reviewed.write(
        agent={"kind": "acp", "command": [sys.executable, "-S", str(SCRIPTED)]},
        acp={"permissions": {"inside": {"default": "allow"}}},
        kiro={"trust_all_tools": True},
        self_review={"agent": "kiro", "model": "small"},
    )
    text = place.workflow.read_text().replace(
        PROMPT,
        "acp: shell echo 1 >out.txt; mkdir -p .sortie; echo done >.sortie/status",
    )
    place.write_text(text)
    reviewed.judge(asks("look again"))

    async with start(PATH=f"{programs}:{os.environ['PATH']}"):
        await handed_off(place)

    (asked,) = reviewed.told("review")
    assert "--trust-tools=read,grep,glob" in asked
    assert "--model small" in asked
    run = await reviewed.run()
    review = run["delivery"]["review"]
    assert (review["agent"], review["model"]) == ("kiro", "small")
    assert run["turns"] == 2
    assert run["credits"] == pytest.approx(0.05)
    logs = await place.sortie("logs", "T-1")
    assert "output     prompt 2" in logs.out
