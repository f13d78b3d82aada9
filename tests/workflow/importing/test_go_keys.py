"""A workflow of sortie-ai/sortie becomes one of ours."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest

from sortie.workflow.importing import KeyOutcome, Program
from tests.workflow.importing.imports import imported, lines, loaded

WHOLE = """\
---
# Where the work is
tracker:
  kind: jira   # our Jira
  endpoint: https://jira.example.org
  api_key: $TRACKER_TOKEN
  project: PAY
  api_version: "2"
  active_states: [To Do, In Progress]
  # People look at it there.
  handoff_state: In Review
  terminal_states:
    - Done   # at last
  handoff_evidence: strict
  no_change_state: Done
  comments:
    on_failure: true

polling:
  interval_ms: 45000
workspace:
  retention_days: 30
hooks:
  after_create: |
    # all of it
    git clone git@example.org:pay.git .
  before_run: echo "$SORTIE_SSH_HOST"
agent:
  kind: opencode
  command: /opt/bin/opencode --verbose
  max_tokens: 100000
  token_warning_percent: 50
  stop_grace_ms: 30000
# What it may do
opencode:
  model: a/b   # the best
  variant: high
  denied_tools: [webfetch]
reactions:
  ci_failure: {provider: github, max_retries: 3, escalation: comment}
  review_comments: {provider: github, poll_interval_ms: 90000, max_continuation_turns: 4}
  bot_review:
    provider: github
    bot_usernames: [linter]
    poll_interval_ms: 95000
  merge_conflicts: {provider: github, triage: {script: ./look}}
  auto_merge: {provider: github, strategy: rebase, require_ci: true}
  merge_completion: {provider: github, target_state: Done}
  label_commands: {fix_label: "do:fix", review_label: "do:review"}
self_review:
  enabled: true
  max_iterations: 3
  verification_commands: [make test]
  reviewer: same
token_rates:
  opencode: {input_per_mtok: 3, output_per_mtok: 15, cache_read_per_mtok: 0.3}
  codex: {input_per_mtok: 1, output_per_mtok: 2}
notifications:
  - kind: slack
    webhook_url: https://hooks.example.org/very-secret
    events: [session.failed]
  - kind: tracker_comment
    events: [session.completed]
logging: {level: warn}
server:
  host: 0.0.0.0
colour: blue
---
{{/* For the pay team */}}
Do {{ .issue.identifier }}.
{{ if .stage.current }}x{{ end }}
"""


def test_a_whole_file_is_valid_and_means_the_same() -> None:
    """Each key that has a counterpart sets it, and the file can be used as it is."""
    made = imported(WHOLE)
    settings = loaded(made).settings

    assert made.program is Program.GO
    assert settings.tracker.handoff_state == "In Review"
    assert settings.tracker.comments.on_completion
    assert settings.agent.kind == "acp"
    assert settings.agent.command == "/opt/bin/opencode acp"
    assert settings.agent.max_turns == 20
    assert settings.agent.stop_grace == 20
    assert settings.logging.level == "warning"
    assert settings.verify.commands == ("make test",)
    assert settings.verify.timeout == 120
    assert settings.self_review is not None
    assert (settings.self_review.rounds, settings.self_review.max_diff_bytes) == (2, 102_400)
    reactions = settings.reactions
    assert reactions.interval == 90
    assert reactions.checks is not None
    assert (reactions.checks.max_runs, reactions.checks.max_log_lines) == (3, 50)
    assert reactions.review is not None
    assert (reactions.review.max_runs, reactions.review.bots) == (4, ("linter",))
    assert reactions.conflicts is not None
    assert reactions.conflicts.max_runs == 1
    assert reactions.merge is not None
    assert reactions.merge.strategy == "rebase"
    assert reactions.merged is not None
    assert reactions.merged.state == "Done"
    assert reactions.commands is not None
    assert reactions.commands.label == "do:fix"
    assert "a/b:" in made.text


def test_what_is_lost_is_told_with_its_place() -> None:
    """And with what to do instead."""
    assert [line.split(": lost")[0] for line in lines(imported(WHOLE), KeyOutcome.LOST)] == [
        "repository.url",
        "14:3: tracker.handoff_evidence",
        "15:3: tracker.no_change_state",
        "22:3: workspace.retention_days",
        "32:3: agent.token_warning_percent",
        "37:3: opencode.variant",
        "40:50: reactions.ci_failure.escalation",
        "46:39: reactions.merge_conflicts.triage",
        "47:52: reactions.auto_merge.require_ci",
        "49:41: reactions.label_commands.review_label",
        "54:3: self_review.reviewer",
        "57:3: token_rates.codex",
        "59:5: notifications[0]",
        "67:1: colour",
        "71:1: prompt",
    ]


def test_no_value_of_the_file_is_told() -> None:
    """Secrets above all."""
    told = "\n".join(map(str, imported(WHOLE).told))

    assert "secret" not in told
    assert "/opt/bin" not in told
    assert "blue" not in told


def test_lines_and_comments_of_what_is_kept_stay() -> None:
    """As they were written; what has become something else keeps the comment above it."""
    text = imported(WHOLE).text

    assert "# Where the work is\ntracker:\n  kind: jira   # our Jira\n" in text
    assert "  # People look at it there.\n  handoff_state: In Review\n" in text
    assert "    - Done   # at last\n" in text
    assert "  after_create: |\n    # all of it\n    git clone" in text
    assert "# What it may do\nacp:\n" in text
    assert "{# For the pay team #}\nDo {{ issue.identifier }}.\n" in text


@dataclass(frozen=True, kw_only=True)
class AgentCase:
    """An agent of the other program, and what it is here."""

    old: str
    kind: str
    command: Any
    block: str = ""
    is_allowed: bool = True


AGENTS = {
    "codex": AgentCase(
        old="agent: {kind: codex, command: codex app-server}\ncodex: {thread_sandbox: readOnly}",
        kind="codex",
        command="codex app-server",
        block="sandbox: read-only",
    ),
    "codex-danger": AgentCase(
        old="agent: {kind: codex}\ncodex: {thread_sandbox: dangerFullAccess}",
        kind="codex",
        command=None,
        block="sandbox: danger-full-access",
    ),
    "codex-program": AgentCase(
        old="agent: {kind: codex, command: /opt/codex}\n"
        "codex: {approval_policy: never, turn_sandbox_policy: {type: workspaceWrite,"
        " networkAccess: true}, thread_sandbox: readOnly, personality: kind, effort: high}",
        kind="codex",
        command="/opt/codex app-server",
        block="sandbox: workspace-write",
    ),
    "copilot": AgentCase(
        old="agent: {kind: copilot-cli}\ncopilot-cli: {max_autopilot_continues: 5}",
        kind="acp",
        command="copilot --acp",
        block="default: allow",
    ),
    "opencode": AgentCase(
        old="agent: {kind: opencode}\n"
        "opencode:\n  allowed_tools: [read, bash]\n  denied_tools: [edit]",
        kind="acp",
        command="opencode acp",
        block="      read: allow\n      execute: allow\n      edit: deny\n",
    ),
    "any": AgentCase(
        old="agent: {kind: agent-client-protocol, command: [gemini, --acp]}",
        kind="acp",
        command=("gemini", "--acp"),
        block="default: allow",
    ),
    "claude": AgentCase(
        old="agent: {command: claude}\nclaude-code: {allowed_tools: [Edit, Write], model: opus}",
        kind="claude-code",
        command="claude",
        block="allowed_tools: Edit,Write",
    ),
    "mock": AgentCase(old="agent: {kind: mock}", kind="kiro", command="sortie-kiro-sim"),
    "kiro": AgentCase(
        old="agent: {kind: kiro, command: kiro-cli acp}", kind="kiro", command="kiro-cli"
    ),
}


@pytest.mark.parametrize("name", AGENTS)
def test_an_agent_becomes_one_of_ours(name: str) -> None:
    """With a command that starts it here, and what it may do without being asked."""
    case = AGENTS[name]
    made = imported(
        "---\ntracker: {kind: file, active_states: [A], terminal_states: [B]}\n"
        f"file: {{path: i}}\n{case.old}\n---\nDo {{{{ .issue.id }}}}\n"
    )
    agent = loaded(made).settings.agent

    assert (agent.kind, agent.command) == (case.kind, case.command)
    assert case.block in made.text
    assert ("permissions:" in made.text) is (case.is_allowed and case.kind == "acp")


def test_defaults_that_differ_are_written() -> None:
    """Where the file leaves a key out and it matters."""
    made = imported(
        "---\ntracker: {kind: github, project: a/b, api_key: $GITHUB_TOKEN,"
        " handoff_state: review}\n---\nDo {{ .issue.id }}\n"
    )
    tracker = loaded(made).settings.tracker

    assert tracker.active_states == ("backlog", "in-progress")
    assert tracker.terminal_states == ("done", "wontfix")
    assert {line.split(": ")[0] for line in lines(made, KeyOutcome.ADDED)} == {
        "tracker.active_states",
        "tracker.terminal_states",
        "agent.kind",
        "agent.max_turns",
        "db_path",
    }


def test_reactions_without_a_handoff_state_are_left_out() -> None:
    """They would be an error here."""
    made = imported(
        "---\ntracker: {kind: file, active_states: [A], terminal_states: [B]}\nfile: {path: i}\n"
        "ci_feedback: {kind: github}\nself_review: {enabled: false}\n---\nDo {{ .issue.id }}\n"
    )

    assert not loaded(made).settings.reactions.on
    assert any("handoff_state" in line for line in lines(made, KeyOutcome.LOST))


RULES = """\
---
tracker: {kind: file, active_states: [To Do], terminal_states: [Done]}
file: {path: issues}
agent: {kind: claude-code}
dispatch:
  rules:
    - name: docs
      match: {labels: [docs], priority: {lte: 2}}
      template: prompts/docs.tmpl
      claude-code: {model: haiku}
    - match: {title: typo}
      agent: codex
      template: gone.tmpl
      stage: fix
      next: docs
  default:
    template: prompts/rest.tmpl
  max_consecutive_hops: 4
---
Do {{ .issue.id }}
"""


def test_rules_become_rules() -> None:
    """With their conditions, agents and prompts; what a rule cannot be here is told."""
    files = {
        "prompts/docs.tmpl": "Write {{ .issue.title }} {{ .stage }}\n",
        "prompts/rest.tmpl": "Mend {{ .issue.title }}\n",
    }
    made = imported(RULES, files=files)
    docs, fix = loaded(made).settings.rules

    assert (docs.name, docs.when.labels, docs.when.title) == ("docs", ("docs",), ())
    assert (docs.settings.agent.kind, fix.settings.agent.kind) == ("claude-code", "codex")
    assert fix.settings.agent.command is None
    assert (
        """\
rules:
  - name: docs
    when:
      labels:
        - docs
      priority:
        lte: 2
    prompt: docs
    claude-code:
      model: haiku
  - when:
      title: typo
    agent:
      kind: codex
"""
        in made.text
    )
    assert made.text.endswith(
        "---\n\nMend {{ issue.title }}\n\n"
        "--- prompt: docs\nWrite {{ issue.title }} {# not imported: .stage #}\n"
    )
    assert [line.split(": lost")[0] for line in lines(made, KeyOutcome.LOST)] == [
        "13:7: dispatch.rules[1].template",
        "14:7: dispatch.rules[1].stage",
        "15:7: dispatch.rules[1].next",
        "18:3: dispatch.max_consecutive_hops",
        "prompts/docs.tmpl:1:26: prompt",
    ]


def test_an_agent_of_a_rule_has_its_command() -> None:
    """A rule of the other program names an agent alone."""
    made = imported(RULES.replace("agent: codex", "agent: opencode"), files={})

    _, fix = loaded(made).settings.rules
    assert (fix.settings.agent.kind, fix.settings.agent.command) == ("acp", "opencode acp")
