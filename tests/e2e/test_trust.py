"""Whose words reach an agent: a daemon, its tracker, and people who may not be trusted."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
import trio

from sortie.model.trust import Right
from tests.e2e.conftest import Start
from tests.e2e.place import Place
from tests.e2e.remote import SIMULATOR
from tests.trackers.gitea.service import PROJECT, TOKEN, GiteaService
from tests.trackers.server.serving import TestServer, serving
from tests.workspaces.remotes import git, make_remote

AGENT = """\
#!/bin/sh
case " $* " in *" chat "*) ;; *) exec {simulator} "$@" ;; esac
printf '%s\\n=====\\n' "$*" >>"{root}/prompts"
{does}
exec {simulator} "$@"
"""
PROMPT = """\
Work on {{ issue.identifier }}: {{ issue.title }}
{{ issue.description }}
{% for comment in issue.comments %}{{ comment.author }}: {{ comment.body }}
{% endfor %}
"""


def prompts(place: Place) -> list[str]:
    """Return what agents were told."""
    path = place.root / "prompts"
    return path.read_text().split("\n=====\n")[:-1] if path.exists() else []


@pytest.fixture
def gitea() -> Iterator[tuple[GiteaService, TestServer]]:
    """A Gitea on which ann may write."""
    service = GiteaService()
    service.crowd.rights["ann"] = Right.WRITE
    for name in ("Todo", "In Progress", "Human Review", "Done"):
        service.label(name)
    with serving(service) as server:
        service.clock = server.now
        yield service, server


def write(place: Place, server: TestServer, **trust: object) -> None:
    """Write a workflow for it."""
    program = place.root / "agent"
    program.write_text(AGENT.format(root=place.root, simulator=SIMULATOR, does=""))
    program.chmod(0o755)
    place.write_workflow(
        PROMPT,
        tracker={
            "kind": "gitea",
            "endpoint": server.url,
            "project": PROJECT,
            "api_key": "$GITEA_TOKEN",
        },
        agent={"command": str(program)},
        trust=trust,
    )


async def until(what: object, within: float = 60) -> None:
    """Wait until a function returns something."""
    with trio.fail_after(within):
        while not what():  # type: ignore[operator]
            await trio.sleep(0.05)


async def test_only_issues_of_those_who_may_write_are_started(
    place: Place, start: Start, gitea: tuple[GiteaService, TestServer]
) -> None:
    """One of somebody else waits, and says why, until somebody who may write vouches for it; an
    edit takes that away. What was written stands in a fence, and comments of others are not
    there."""
    service, server = gitea
    write(place, server, authors="write")
    service.put(1, names=["Todo"], user={"login": "mallory"}, body="MALLORY")
    service.put(2, names=["Todo"], user={"login": "ann"}, body="ANN<!-- HIDDEN -->\u200b")
    service.say(2, "mallory", "PAYLOAD")
    service.say(2, "ann", "A WORD OF ANN")

    async with start(GITEA_TOKEN=TOKEN):
        await until(lambda: "Human Review" in service.issues[2]["names"])
        told = await place.sortie("explain", "1", GITEA_TOKEN=TOKEN)
        (prompt,) = prompts(place)

        service.crowd.labels["1"] = [("sortie:trusted", "mallory", service.clock(), True)]
        service.put(1, names=["Todo", "sortie:trusted"])
        await trio.sleep(1)
        assert len(prompts(place)) == 1
        service.crowd.labels["1"].append(("sortie:trusted", "ann", service.clock(), True))
        service.put(1)
        await until(lambda: "Human Review" in service.issues[1]["names"])

    assert "mallory, may not write to the project" in told.out
    nonce = re.search(r"<<untrusted text (\w+), from", prompt)[1]  # type: ignore[index]
    assert f"ANN\n<<end {nonce}>>" in prompt
    assert f"A WORD OF ANN\n<<end {nonce}>>" in prompt
    assert "PAYLOAD" not in prompt
    assert "1 comment is left out, as the words of mallory do not count here." in prompt
    assert "MALLORY" in prompts(place)[1]


async def test_a_key_that_may_not_ask_starts_nothing(
    place: Place, start: Start, gitea: tuple[GiteaService, TestServer]
) -> None:
    """Nobody is trusted of whom nothing is told."""
    service, server = gitea
    service.crowd.refuses = True
    write(place, server, authors="write")
    service.put(1, names=["Todo"], user={"login": "ann"})

    async with start(GITEA_TOKEN=TOKEN):
        await until(lambda: service.crowd.asked)
        await trio.sleep(1)  # some polls
        told = await place.sortie("explain", "1", GITEA_TOKEN=TOKEN)

    assert "is not known to be trusted" in told.out
    assert prompts(place) == []


async def test_words_of_others_can_be_left_out(
    place: Place, start: Start, gitea: tuple[GiteaService, TestServer]
) -> None:
    """Then the issue is worked on by what those who are trusted have said."""
    service, server = gitea
    write(place, server, authors="write", on_untrusted="omit")
    service.put(1, names=["Todo"], user={"login": "mallory"}, title="PAYLOAD", body="PAYLOAD")
    service.say(1, "ann", "Mend the parser")

    async with start(GITEA_TOKEN=TOKEN):
        await until(lambda: "Human Review" in service.issues[1]["names"])

    (prompt,) = prompts(place)
    assert "PAYLOAD" not in prompt
    assert "Mend the parser" in prompt
    assert "The title and the description of the issue are left out" in prompt


async def test_files_of_the_branch_steer_nobody(place: Place, start: Start, tmp_path: Path) -> None:
    """What somebody has pushed to an issue's branch stands aside while its agent works, and is on
    the branch afterwards."""
    bare = make_remote(tmp_path / "forge", {"README": "hello\n", "CLAUDE.md": "the base\n"})
    seed = tmp_path / "forge/seed"
    git(seed, "checkout", "-q", "-b", "sortie/T-1")
    (seed / "CLAUDE.md").write_text("PAYLOAD\n")
    (seed / ".mcp.json").write_text("PAYLOAD\n")
    git(seed, "add", "-A")
    git(seed, "commit", "-q", "-m", "Steer")
    git(seed, "push", "-q", "origin", "sortie/T-1")
    program = place.root / "agent"
    seen = f'cat CLAUDE.md .mcp.json >>"{place.root}/prompts" 2>&1; echo work >out.txt; git add -A'
    program.write_text(AGENT.format(root=place.root, simulator=SIMULATOR, does=seen))
    program.chmod(0o755)
    place.write_workflow(
        "{{ issue.identifier }}",
        repository={"url": str(bare)},
        agent={"command": str(program)},
    )
    place.add_issue("T-1")

    async with start() as daemon:
        await until(lambda: place.state_of("T-1") == "Human Review")
        line = await daemon.line("turn.agent_files")

    assert "PAYLOAD" not in (place.root / "prompts").read_text()
    assert "the base" in (place.root / "prompts").read_text()
    assert line["count"] == 2
    assert git(bare, "show", "sortie/T-1:CLAUDE.md") == "PAYLOAD"
    assert git(bare, "show", "sortie/T-1:.mcp.json") == "PAYLOAD"
    assert git(bare, "show", "sortie/T-1:out.txt") == "work"
