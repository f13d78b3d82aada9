"""What the doctor says of who may steer the agent."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

import pytest

from sortie.config.trust import TrustSettings
from sortie.daemon.doctor import Diagnosis, diagnose
from sortie.daemon.doctor.trust import about_trust
from sortie.daemon.options import RunOptions
from sortie.model.checks import CheckOutcome, passed
from sortie.model.trust import Right
from tests.trackers.gitea.service import PROJECT, TOKEN, GiteaService
from tests.trackers.server.serving import serving

ALL = frozenset(Right)
WRITERS = "those who may write to the project"


@pytest.mark.parametrize(
    ("trust", "public", "sentence"),
    [
        ({}, None, "issues of everybody are started (trust.authors), and comments count"),
        (
            {},
            False,
            "issues of everybody are started (trust.authors), and comments count;"
            " the project is not public",
        ),
        (
            {"authors": "write"},
            True,
            f"issues of {WRITERS} are started, and those to which they give the label"
            " sortie:trusted, and their comments count; the project is public",
        ),
        (
            {"authors": ["ann", "bob"], "comments": "members", "label": "ok"},
            None,
            "issues of ann, bob are started, and those to which they give the label ok,"
            " and comments of members of the project count",
        ),
    ],
)
def test_who_may_steer_the_agent_is_said(
    trust: dict[str, object], public: bool | None, sentence: str
) -> None:
    """By the settings, and by what the tracker has said of the project."""
    found = about_trust(TrustSettings.model_validate(trust), ALL, public=public)

    assert found == passed(sentence)


@pytest.mark.parametrize(
    ("trust", "rights", "remedy"),
    [
        ({}, ALL, "set trust.authors: write"),
        ({}, {Right.MEMBERS}, "set trust.authors: members"),
        ({}, (), "set trust.authors: a list of names"),
        ({"authors": "write", "comments": "anyone"}, ALL, "set trust.comments: write"),
    ],
)
def test_everybody_in_public_is_a_warning(
    trust: dict[str, object], rights: Collection[Right], remedy: str
) -> None:
    """The remedy names a word that the tracker can tell of."""
    found = about_trust(TrustSettings.model_validate(trust), rights, public=True)

    assert found.outcome is CheckOutcome.WARNING
    assert found.sentence.startswith("strangers may steer the agent: the project is public; ")
    assert found.remedy.startswith(remedy)


WORKFLOW = """\
---
tracker:
  kind: gitea
  endpoint: {url}
  project: {project}
  api_key: $GITEA_TOKEN
  active_states: [Todo]
  terminal_states: [Done]
workspace: {{root: work}}
kiro: {{trust_all_tools: true}}
---
Do it
"""


@pytest.mark.parametrize("private", [True, False])
def test_the_tracker_is_asked_no_more_for_it(tmp_path: Path, private: bool) -> None:
    """What its own check was told says whether strangers can write issues."""
    service = GiteaService(private=private)
    found: list[Diagnosis] = []
    with serving(service) as server:
        service.clock = server.now
        workflow = tmp_path / "WORKFLOW.md"
        workflow.write_text(WORKFLOW.format(url=server.url, project=PROJECT))
        environ = {"GITEA_TOKEN": TOKEN, "HOME": str(tmp_path), "PATH": "/bin:/usr/bin"}
        diagnose(RunOptions(workflow=workflow, environ=environ), found.append)
        asked = [r.path for r in server.asked if r.path.endswith(PROJECT)]

    (trust,) = [each.result for each in found if each.name == "tracker.trust"]
    assert trust.outcome is (CheckOutcome.OK if private else CheckOutcome.WARNING)
    assert ("is not public" in trust.sentence) is private
    # One for this check, and one where the list is empty.
    assert len(asked) == 2
