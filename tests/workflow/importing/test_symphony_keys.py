"""A workflow of Symphony becomes one of ours."""

from __future__ import annotations

import json

import pytest

from sortie.agents.codex.settings import CodexSettings
from sortie.model import WorkflowError
from sortie.workflow.importing import KeyOutcome, Program
from tests.workflow.importing.imports import imported, lines, loaded

WHOLE = """\
---
tracker:
  kind: linear
  provider:
    project_slug: "pay-0123456789ab"   # from its address
    assignee: me
  required_labels: [agent]
  active_states:
    - Todo
    - Merging
polling: {interval_ms: 5000}
hooks:
  after_create: git clone https://example.org/pay.git .
agent:
  max_concurrent_agents: 3
codex:
  command: codex --config model=secret-model app-server
  approval_policy: never
  thread_sandbox: workspace-write
  turn_timeout_ms: 1800000
observability: {refresh_ms: 500}
---
Work on `{{ issue.identifier }}` at {{ issue.url }}.
{% if attempt %}Attempt {{ attempt }}{% endif %}
"""


def test_a_whole_file_is_valid_and_means_the_same() -> None:
    """The project is a filter, Codex keeps its command, and times are the agent's."""
    made = imported(WHOLE)
    workflow = loaded(made)
    settings = workflow.settings

    assert made.program is Program.SYMPHONY
    assert settings.tracker.project == "ENG"
    assert settings.tracker.api_key is not None
    assert json.loads(settings.tracker.query_filter or "") == {
        "project": {"slugId": {"eq": "pay-0123456789ab"}},
        "assignee": {"isMe": {"eq": True}},
    }
    assert settings.tracker.terminal_states[:2] == ("Closed", "Cancelled")
    assert (settings.agent.kind, settings.agent.command) == (
        "codex",
        "codex --config model=secret-model app-server",
    )
    assert settings.block("codex") == CodexSettings(approval_policy="never")
    assert (settings.agent.turn_timeout, settings.agent.max_turns) == (1800, 20)
    assert settings.server.port == 0
    assert '{{ issue.url or "" }}' in workflow.prompt.source
    assert "secret-model" not in "\n".join(map(str, made.told))
    assert lines(made, KeyOutcome.LOST) == [
        "21:1: observability: lost: the dashboard and sortie status have no such settings"
    ]


@pytest.mark.parametrize(
    ("tracker", "lost"),
    [
        ("kind: memory", ""),
        ("kind: github\n  provider: {repo: a/b}\n  active_states: [A]\n  terminal_states: [B]", ""),
        (
            "kind: jira\n  provider: {base_url: 'https://x.atlassian.net', email: me@example.org,"
            " api_token: $TRACKER_TOKEN, project_key: PAY}\n  active_states: [A]",
            "4:51: tracker.provider.email",
        ),
        (
            "kind: linear\n  project_slug: $SLUG",
            "4:3: tracker.project_slug",
        ),
    ],
)
def test_each_tracker_has_its_own_keys(tracker: str, lost: str) -> None:
    """What a provider's block says is the tracker's here."""
    made = imported(f"---\ntracker:\n  {tracker}\n---\nDo it\n", Program.SYMPHONY)

    assert loaded(made)
    assert [line.split(": lost")[0] for line in lines(made, KeyOutcome.LOST)] == [lost] * bool(lost)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("---\ntracker: {kind: file}\n---\nDo it\n", "no sign of either"),
        ("---\nobservability: {}\ndispatch: {}\n---\n{{ .x }}", "no sign|it has dispatch"),
        ("---\ntracker: [\n---\nDo it\n", "invalid YAML"),
        ("---\ntracker: {}\n", "does not end"),
    ],
)
def test_a_file_that_cannot_be_taken_is_refused(content: str, message: str) -> None:
    """With one error, and its place where it has one."""
    with pytest.raises(WorkflowError, match=message) as caught:
        imported(content)

    assert len(caught.value.problems) == 1


def test_names_that_are_not_there_are_told() -> None:
    """A template of Symphony's may ask for what only it has."""
    made = imported(
        "---\ntracker: {kind: memory}\n---\nA\n{{ issue.native_ref }}\n", Program.SYMPHONY
    )

    (line,) = [line for line in lines(made, KeyOutcome.LOST) if "native_ref" in line]
    assert line.startswith('5:1: prompt: lost: issue has no "native_ref"; known: ')
