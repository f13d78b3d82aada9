"""What a running daemon can follow of a changed WORKFLOW.md."""

from __future__ import annotations

from sortie.config.reload import keep_restart_only, needs_restart
from tests.config.sample import GOOD, Board, Files, around, settings_of

EVERYTHING = """\
tracker:
  kind: file
  endpoint: e2
  api_key: key-2
  project: p2
  query_filter: q2
  active_states: [Doing]
  handoff_state: Checked
file: {path: elsewhere, others: [a]}
workspace: {root: /elsewhere}
server: {host: localhost, port: 1, auth_token: $T}
logging: {level: debug, format: json}
store: {url: postgresql://h/d, schema: other, shared_schema: all, lease_ms: 20000, weight: 2}
db_path: other.db
isolation: none
polling: {interval_ms: 5}
agent: {max_turns: 3}
robot: {trust: [a]}
"""


def test_what_needs_a_restart_is_named() -> None:
    """Every key that is used once at start is told, and none that is not."""
    old, new = settings_of(GOOD), settings_of(EVERYTHING, around({"T": "token"}))

    assert needs_restart(old, old) == ()
    assert needs_restart(old, new) == (
        "tracker.endpoint",
        "tracker.api_key",
        "tracker.project",
        "tracker.query_filter",
        "file.path",
        "file.others",
        "workspace.root",
        "server.host",
        "server.port",
        "server.auth_token",
        "logging.level",
        "logging.format",
        "store.url",
        "store.schema",
        "store.shared_schema",
        "store.lease_ms",
        "store.weight",
        "db_path",
        "isolation",
    )


def test_the_rest_of_the_new_settings_applies() -> None:
    """What needs a restart stays as it was; all else is new, and nothing needs a restart then."""
    old, new = settings_of(GOOD), settings_of(EVERYTHING, around({"T": "token"}))

    kept = keep_restart_only(old, new)

    assert needs_restart(old, kept) == ()
    assert (kept.tracker.active_states, kept.tracker.handoff_state) == (("Doing",), "Checked")
    assert (kept.polling, kept.agent, kept.block("robot")) == (
        new.polling,
        new.agent,
        new.block("robot"),
    )
    assert (kept.tracker.endpoint, kept.tracker.api_key) == (None, None)
    assert (kept.workspace, kept.server, kept.logging) == (
        old.workspace,
        old.server,
        old.logging,
    )
    assert (kept.db_path, kept.block("file")) == (old.db_path, Files(path="/srv/issues"))
    assert "T" not in old.secret_variables


def test_another_kind_of_tracker_needs_a_restart() -> None:
    """The old tracker's block stays in force beside the new one's."""
    old = settings_of(GOOD)
    new = settings_of(GOOD.replace("kind: file", "kind: board").replace("issues", "elsewhere"))

    kept = keep_restart_only(old, new)

    assert needs_restart(old, new) == ("tracker.kind",)
    assert (kept.tracker.kind, kept.tracker_block) == ("file", "file")
    assert kept.block("file") == Files(path="/srv/issues")
    assert kept.block("board") == Board()


def test_secrets_of_before_stay_secrets_and_the_root_on_hosts_stays() -> None:
    """Runs under way have the old token still, and their workspaces are where they were."""
    old = settings_of(GOOD).model_copy(
        update={"secret_variables": ("OLD_TOKEN",), "remote_root": "~/old"}
    )
    new = settings_of(GOOD).model_copy(
        update={"secret_variables": ("NEW_TOKEN",), "remote_root": "~/new"}
    )

    kept = keep_restart_only(old, new)

    assert kept.secret_variables == ("NEW_TOKEN", "OLD_TOKEN")
    assert kept.remote_root == "~/old"
