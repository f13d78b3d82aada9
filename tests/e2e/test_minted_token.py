"""The token that a GitHub App mints for a run, where its agent may push."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import trio

from tests.e2e.conftest import Start
from tests.e2e.forged import make_bare
from tests.e2e.place import PATIENCE, PROMPT, Place
from tests.e2e.remote import SIMULATOR
from tests.e2e.test_no_secret import content_of, written
from tests.forges.service import PATH, ForgeService
from tests.trackers.github.rig import QUICK
from tests.trackers.github.service import PREFIX, GitHubService
from tests.trackers.github.shapes import a_label
from tests.trackers.github.test_app_credential import KEY, PEM
from tests.trackers.server.exchange import Received, Reply
from tests.trackers.server.serving import serving
from tests.workspaces.git_http import git_server
from tests.workspaces.remotes import git

MINTED = "ghs_77_minted1"
AGENT = """\
#!/bin/sh
# An agent that commits, and tells the token that it has been given.
case " $* " in *" chat "*) ;; *) exec {simulator} "$@" ;; esac
echo "$SORTIE_GIT_PASSWORD" >{root}/token
echo mine >out.txt && git add out.txt && git commit -q -m Mine && git push -q origin HEAD
KIRO_SIM_NOTE=0 KIRO_SIM_SAY="I have said $SORTIE_GIT_PASSWORD" exec {simulator} "$@"
"""


class WholeGitHub:
    """Issues in one repository, and pull requests in another, for one App."""

    def __init__(self, bare: Path) -> None:
        self.issues = GitHubService(public_key=KEY.public_key(), tokens=set())
        self.forge = ForgeService("github", bare)

    def answer(self, request: Received) -> Reply:
        """See Service."""
        if not request.path.startswith(f"{PREFIX}/repos/{PATH}"):
            return self.issues.answer(request)
        self.forge.observe()
        token = request.headers.get("authorization", "").removeprefix("Bearer ")
        if token not in self.issues.tokens:
            return Reply(status=401, body={"message": "Bad credentials"}, sound=False)
        return self.forge.face.answer(request)


@contextmanager
def whole_github(place: Place) -> Iterator[tuple[WholeGitHub, Path, dict[str, Any]]]:
    """Serve a GitHub with an issue and a repository; yield it with the settings that name them."""
    root = place.root / "forge"
    bare = make_bare(root)
    hub = WholeGitHub(bare)
    with serving(hub, None) as server, git_server(root, MINTED) as remote:
        hub.issues.base = f"{server.url}{PREFIX}"
        for name in ("Todo", "Review"):
            hub.issues.labels[name.casefold()] = a_label(hub.issues.repository, name)
        hub.issues.put(1, names=["Todo"], title="Mend it")
        yield (
            hub,
            bare,
            {
                "tracker": {
                    "kind": "github",
                    "endpoint": hub.issues.base,
                    "project": "octo-org/hello-world",
                    "api_key": "$APP_KEY",
                    "active_states": ["Todo"],
                    "in_progress_state": None,
                    "handoff_state": "Review",
                },
                "github": {**QUICK, "app_id": 5, "installation_id": 77},
                "repository": {
                    "url": f"{remote.url}/{PATH}.git",
                    "credential": "tracker",
                    "agent_pushes": True,
                },
                "forge": {"kind": "github"},
            },
        )


async def test_a_minted_token_is_hidden_like_one_of_the_settings(
    place: Place, start: Start
) -> None:
    """An agent that has it and says it does not bring it into the log, the transcript, an answer of
    the API, a page, or the body of the pull request; and no commit with it is pushed."""
    program = place.root / "agent"
    program.write_text(AGENT.format(root=place.root, simulator=SIMULATOR))
    program.chmod(0o755)
    with whole_github(place) as (hub, bare, blocks):
        place.write_workflow(
            PROMPT,
            **blocks,
            agent={"command": str(program)},
            hooks={"after_run": f"cat {place.root}/token"},
        )

        async with start("--log-level", "debug", APP_KEY=PEM) as daemon:
            with trio.fail_after(PATIENCE):
                while hub.issues.names(1) != ["Review"]:
                    await trio.sleep(0.05)
            history = (await daemon.get("/api/v1/history")).text
            run_id = json.loads(history)[0]["run_id"]
            transcript = (await daemon.get(f"/api/v1/runs/{run_id}/transcript")).text
            page = (await daemon.get("/issues/hello-world-1")).text

    assert (place.root / "token").read_text().strip() == MINTED
    assert git(bare, "log", "-1", "--format=%s", "sortie/hello-world-1") == "Mine"
    body = hub.forge.requests[0].body
    told = {"log": json.dumps(daemon.log), "transcript": transcript, "body": body}
    assert [name for name, text in told.items() if "I have said ***" not in text] == []
    assert MINTED not in f"{told}{history}{page}"
    own = (path for path in written(place) if not path.is_relative_to(place.home))  # the agent's
    files = [path for path in own if MINTED.encode() in content_of(path)]
    assert files == [place.root / "token"]
