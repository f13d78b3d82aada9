"""Every wrong front matter gets located errors, all of them at once."""

from __future__ import annotations

import hashlib

import pytest

from sortie.config.settings import AgentSettings, Isolation
from sortie.config.values import Frozen
from sortie.config.worker import WorkerSettings
from tests.config.sample import (
    GOOD,
    Board,
    Files,
    Robot,
    around,
    decoded,
    findings,
    settings_of,
)

WHOLE_MS = "needs a whole number of milliseconds of at least 1"
COMMAND = "needs a program as a text, or a list of texts: the program and its arguments"


def test_defaults_are_those_of_the_contract() -> None:
    """A front matter with what is required only has the documented default everywhere else."""
    digest = hashlib.sha256(b"/srv/WORKFLOW.md").hexdigest()[:16]

    settings = settings_of(GOOD)

    assert settings.model_dump(exclude={"tracker", "blocks"}) == {
        "rules": (),
        "rule": "",
        "prompt": "",
        "stage_result": "",
        "polling": {"interval": 30.0},
        "workspace": {
            "root": f"/home/me/.local/state/sortie/workspaces/{digest}",
            "keep_unpushed_days": 14,
            "keep_rescued_days": 30,
            "max_bytes": 0,
            "max_bytes_each": 0,
        },
        "repository": {
            "url": None,
            "base": None,
            "branch": "sortie/{{ issue.identifier }}",
            "credential": None,
            "identity_file": None,
            "submodules": False,
            "lfs": False,
            "author_name": "Sortie",
            "author_email": "sortie@localhost",
            "agent_pushes": False,
            "leftovers": "commit",
            "message": "{{ issue.identifier }}: {{ issue.title }}",
            "no_change": "hold",
        },
        "verify": {"commands": (), "timeout": 600.0, "where": "clean", "rounds": 3},
        "self_review": None,
        "questions": None,
        "sandbox": {
            "kind": "none",
            "read": (),
            "write": (),
            "hide": (),
            "network": "full",
            "command": None,
            "credentials": "agent",
            "image": None,
            "devcontainer": False,
            "engine": None,
            "memory": None,
            "cpus": None,
            "pids": None,
        },
        "reactions": {
            "watch_days": 14,
            "interval": 60.0,
            "max_interval": 900.0,
            "needs_human_label": "needs-human",
            "checks": None,
            "review": None,
            "conflicts": None,
            "commands": None,
            "merge": None,
            "merged": None,
            "closed": None,
        },
        "webhooks": {
            "port": None,
            "github": None,
            "gitlab": None,
            "gitea": None,
            "linear": None,
            "jira": None,
        },
        "forge": {
            "kind": "auto",
            "endpoint": None,
            "title": "{{ issue.identifier }}: {{ issue.title }}",
            "body": None,
            "draft": False,
            "labels": (),
            "reviewers": (),
            "assignees": (),
        },
        "hooks": {
            "after_create": None,
            "before_run": None,
            "after_run": None,
            "before_remove": None,
            "timeout": 60.0,
            "run_on": "workspace",
            "pass_env": (),
        },
        "agent": {
            "kind": "kiro",
            "command": None,
            "max_turns": 5,
            "max_sessions": 0,
            "max_hops": 10,
            "max_tokens": 0,
            "max_credits": 0.0,
            "max_cost_usd": 0.0,
            "max_concurrent_agents": 10,
            "max_concurrent_agents_by_state": {},
            "turn_timeout": 3600.0,
            "read_timeout": 5.0,
            "stall_timeout": 300.0,
            "stop_grace": 5.0,
            "inactive_grace": 30.0,
            "max_retry_backoff": 300.0,
            "status_instructions": True,
        },
        "share": {"weight": 1, "guaranteed": 0},
        "worker": {
            "ssh_hosts": (),
            "kubernetes": None,
            "kubeconfig": None,
            "max_concurrent_agents_per_host": None,
            "ssh_strict_host_key_checking": "accept-new",
            "ssh_config": None,
            "ssh_known_hosts": None,
            "ssh_identity_files": (),
            "ssh_pass_env": (),
            "ssh_secret_delivery": "stdin",
            "ssh_reattach": False,
            "ssh_reattach_time": 300.0,
        },
        "server": {"host": "127.0.0.1", "port": 7678, "auth_token": None, "public_url": None},
        "logging": {"level": "info", "format": "text"},
        "history": {"keep_days": 30, "max_bytes": 1 << 30},
        "journal": {"keep_days": 7, "max_bytes": 256 << 20},
        "traces": None,
        "budget": {"daily_credits": 0.0, "daily_cost_usd": 0.0, "timezone": "UTC"},
        "token_rates": {},
        "notifications": (),
        "tools": (),
        "store": {
            "url": None,
            "schema_name": "sortie",
            "shared_schema": "sortie_shared",
            "lease": 15.0,
            "weight": 1.0,
        },
        "db_path": "/srv/.sortie.db",
        "isolation": Isolation.AUTO,
        "trust": {
            "authors": "anyone",
            "comments": None,
            "label": "sortie:trusted",
            "on_untrusted": "hold",
            "agent_files": "base",
            "fences": True,
        },
        "tracker_block": "file",
        "remote_root": f"~/.local/state/sortie/workspaces/{digest}",
        "secret_variables": ("SORTIE_SERVER_AUTH_TOKEN", "SORTIE_TRACKER_API_KEY"),
        "secret_parts": (),
    }
    assert settings.tracker.model_dump() == {
        "kind": "file",
        "endpoint": None,
        "api_key": None,
        "project": None,
        "query_filter": None,
        "active_states": ("Todo",),
        "terminal_states": (),
        "label_states": (),
        "required_labels": (),
        "in_progress_state": None,
        "handoff_state": "Review",
        "comments": {"on_dispatch": False, "on_completion": False, "on_failure": False},
    }
    assert not settings.server.port_given


def test_blocks_of_adapters_are_decoded_by_their_schemas() -> None:
    """A block that is absent has its defaults; one that is there is checked and resolved."""
    settings = settings_of(GOOD)

    assert settings.block("file") == Files(path="/srv/issues")
    assert settings.block("robot") == Robot(trust_all=True)
    assert settings.block("board") == Board()


def test_a_block_with_required_keys_may_be_absent_if_it_is_not_chosen() -> None:
    """Only the chosen tracker's required keys are required."""
    settings = settings_of(
        "tracker: {kind: board, active_states: [a], handoff_state: b}\nrobot: {trust_all: true}"
    )

    assert settings.tracker_block == "board"
    with pytest.raises(KeyError):
        settings.block("file")


def test_all_keys_take_their_values() -> None:
    """Values of every type arrive as written, times as seconds, states trimmed and as keys."""
    settings = settings_of(
        GOOD
        + """
agent:
  command: [sh, -c, "x"]
  max_concurrent_agents_by_state: {" In Progress ": 2}
  stall_timeout_ms: -1
  stop_grace_ms: 0
worker:
  ssh_hosts: [build1, "me@build2:2222", "[::1]:22"]
  max_concurrent_agents_per_host: 3
  ssh_strict_host_key_checking: yes
  ssh_identity_files: [~/key, keys/one]
  ssh_pass_env: [A_1]
server: {port: 7678}
"""
    )

    assert settings.agent == AgentSettings(
        command=("sh", "-c", "x"),
        max_concurrent_agents_by_state=Frozen({"in progress": 2}),
        stall_timeout_ms=-1,
        stop_grace_ms=0,
    )
    assert settings.worker == WorkerSettings(
        ssh_hosts=("build1", "me@build2:2222", "[::1]:22"),
        max_concurrent_agents_per_host=3,
        ssh_strict_host_key_checking="yes",
        ssh_identity_files=("/home/me/key", "/srv/keys/one"),
        ssh_pass_env=("A_1",),
    )
    assert settings.server.port_given


@pytest.mark.parametrize("root", ["", "root: /w, "])
def test_every_key_of_the_workspace_counts(root: str) -> None:
    """Beside a root that is given, and beside its default."""
    kept = {"keep_unpushed_days": 2, "keep_rescued_days": 3, "max_bytes": 5, "max_bytes_each": 7}
    keys = ", ".join(f"{key}: {value}" for key, value in kept.items())

    settings = settings_of(f"{GOOD}workspace: {{{root}{keys}}}\n")

    assert settings.workspace.model_dump(exclude={"root"}) == kept


def test_a_key_without_a_value_has_its_default() -> None:
    """Null says nothing, in a block as well as in a key."""
    settings = settings_of(GOOD + "hooks:\nagent: {max_turns: }\ndb_path:\n")

    assert settings == settings_of(GOOD)


UNKNOWN_TOP = (
    "known: agent, board, budget, db_path, file, forge, history, hooks, isolation, journal, "
    "logging, notifications, polling, questions, reactions, repository, robot, rules, sandbox, "
    "self_review, server, share, store, token_rates, tools, traces, tracker, trust, verify, "
    "webhooks, worker, workspace"
)

BAD = {
    "empty": (
        "",
        [
            "W:1:1: tracker.kind: is required; known: board, file",
            "W:1:1: tracker.active_states: is empty, and so is terminal_states; "
            "name the states in which agents work",
            "W:1:1: warning: tracker.handoff_state: is not set, and agent.max_sessions sets no "
            "limit: an issue that stays active is run without end",
            "W:1:1: warning: robot.trust: trusts nothing",
        ],
    ),
    "a text": ("a", ['W:1:1: the front matter needs to be a mapping, not the text "a"']),
    "a list": ("- 1", ["W:1:1: the front matter needs to be a mapping, not a list"]),
    "block is a number": (
        GOOD.replace("robot:\n  trust_all: true", "robot: 5"),
        ["W:7:8: robot: needs a mapping, not 5"],
    ),
    "tracker is a list": (
        "tracker: [file]\nrobot: {trust: [a]}",
        ["W:1:1: tracker: needs a mapping, not a list"],
    ),
    "block is a list": (GOOD + "worker: []", ["W:9:1: worker: needs a mapping, not an empty list"]),
    "unknown kinds": (
        GOOD.replace("kind: file", "kind: fil") + "agent: {kind: 5}",
        [
            'W:2:9: tracker.kind: needs a known kind, not the text "fil"; did you mean "file"?',
            "W:9:15: agent.kind: needs a known kind, not 5; known: kiro",
        ],
    ),
    "unknown keys": (
        GOOD
        + "  modle: x\nagent: {max-turn: 1}\ntraker: {}\nzzzz: 1\ngithub: {}\n"
        + "agents: {}\nAgent: {}",
        [
            'W:9:3: robot.modle: unknown key; did you mean "model"?',
            'W:10:9: agent.max-turn: unknown key; did you mean "max_turns"?',
            'W:11:1: traker: unknown key; did you mean "tracker"?',
            f"W:12:1: warning: zzzz: unknown key, ignored; {UNKNOWN_TOP}",
            f"W:13:1: warning: github: unknown key, ignored; {UNKNOWN_TOP}",
            'W:14:1: agents: unknown key; did you mean "agent"?',
            'W:15:1: Agent: unknown key; did you mean "agent"?',
        ],
    ),
    "nested": (
        GOOD.replace("handoff_state: Review", "comments: {on_dispatch: yes, on_end: true}")
        + "agent: {max_sessions: 1}",
        [
            'W:4:27: tracker.comments.on_dispatch: needs true or false, not the text "yes"; '
            "yes, no, on and off are texts in YAML 1.2",
            "W:4:32: tracker.comments.on_end: unknown key; "
            "known: on_completion, on_dispatch, on_failure",
        ],
    ),
    "states": (
        GOOD.replace("[Todo]", '[Todo, 5, true, null, {a: 1}, [x], "", "a\\tb"]'),
        [
            "W:3:25: tracker.active_states[1]: needs a text, not 5; put it in quotes",
            "W:3:28: tracker.active_states[2]: needs a text, not true; put it in quotes",
            "W:3:34: tracker.active_states[3]: needs a text, not nothing",
            "W:3:40: tracker.active_states[4]: needs a text, not a mapping",
            "W:3:48: tracker.active_states[5]: needs a text, not a list",
            "W:3:53: tracker.active_states[6]: must not be blank",
            'W:3:57: tracker.active_states[7]: needs a text on one line, not the text "a\\tb"',
        ],
    ),
    "no list": (
        GOOD.replace("[Todo]", "Todo"),
        ['W:3:18: tracker.active_states: needs a list, not the text "Todo"'],
    ),
    "required": (GOOD.replace("path: issues", "path:"), ["W:6:3: file.path: is required"]),
    "required, no block": (
        GOOD.replace("file:\n  path: issues\n", ""),
        ["W:1:1: file.path: is required"],
    ),
    "block without value": (
        GOOD.replace("file:\n  path: issues\n", "file:\n"),
        ["W:1:1: file.path: is required"],
    ),
    "secret": (
        GOOD.replace("kind: file", "kind: file\n  api_key: 12345").replace(
            "path: issues", "path: issues\n  password: [hunter2]"
        ),
        ["W:3:12: tracker.api_key: needs a text", "W:8:3: file.password: needs a text"],
    ),
    "rule of a block": (
        GOOD + "  trust: [a]",
        ["W:9:3: robot.trust: trust_all and trust exclude each other"],
    ),
    "rule of a block and a wrong value": (
        GOOD + "  trust: [a]\n  model: 5",
        [
            "W:9:3: robot.trust: trust_all and trust exclude each other",
            "W:10:10: robot.model: needs a text, not 5; put it in quotes",
        ],
    ),
    "union": (GOOD + "  level: [1]", ["W:9:3: robot.level: needs a whole number, not a list"]),
    "native types": (
        GOOD + "board: {columns: 0, view: tree, code: A1}",
        [
            "W:9:18: board.columns: needs a number of at least 1, not 0",
            "W:9:27: board.view: needs 'list' or 'grid', not the text \"tree\"",
            "W:9:39: board.code: string should match pattern '^[a-z]+$', not the text \"A1\"",
        ],
    ),
    "hooks": (
        GOOD + 'hooks: {before_run: "", timeout_ms: 1.5, run_on: host}',
        [
            "W:9:21: hooks.before_run: must not be blank",
            f"W:9:37: hooks.timeout_ms: {WHOLE_MS}, not 1.5",
            'W:9:50: hooks.run_on: needs workspace or orchestrator, not the text "host"',
        ],
    ),
    "numbers": (
        GOOD
        + """\
agent:
  max_turns: 0
  max_sessions: -1
  max_concurrent_agents: 1e3
  turn_timeout_ms: 10000000000000000000000
  read_timeout_ms: .nan
  stall_timeout_ms: x
  stop_grace_ms: 20001
  max_retry_backoff_ms: true
  status_instructions: 1
polling: {interval_ms: "5"}
server: {port: 65536}
""",
        [
            "W:10:14: agent.max_turns: needs a whole number of at least 1, not 0",
            "W:11:17: agent.max_sessions: needs a whole number of at least 0, not -1",
            "W:12:26: agent.max_concurrent_agents: needs a whole number of at least 1, not 1000.0",
            f"W:13:20: agent.turn_timeout_ms: {WHOLE_MS}, not a number that large",
            f"W:14:20: agent.read_timeout_ms: {WHOLE_MS}, not nan",
            "W:15:21: agent.stall_timeout_ms: "
            'needs a whole number of milliseconds, not the text "x"',
            "W:16:18: agent.stop_grace_ms: "
            "needs a whole number of milliseconds from 0 to 20000, not 20001",
            f"W:17:25: agent.max_retry_backoff_ms: {WHOLE_MS}, not true",
            "W:18:24: agent.status_instructions: needs true or false, not 1",
            f'W:19:24: polling.interval_ms: {WHOLE_MS}, not the text "5"',
            "W:20:16: server.port: needs a whole number from 0 to 65535, not 65536",
        ],
    ),
    "commands": (
        GOOD + "agent: {command: []}",
        [f"W:9:9: agent.command: {COMMAND}, not an empty list"],
    ),
    "blank command": (
        GOOD + 'agent: {command: " "}',
        [f'W:9:18: agent.command: {COMMAND}, not the text " "'],
    ),
    "command of numbers": (
        GOOD + "agent: {command: [kiro-cli, 5, --x, [y]]}",
        [
            "W:9:29: agent.command[1]: needs a text, not 5; put it in quotes",
            "W:9:37: agent.command[3]: needs a text, not a list",
        ],
    ),
    "command without program": (
        GOOD + 'agent: {command: ["", a]}',
        [f"W:9:9: agent.command: {COMMAND}, not a list"],
    ),
    "worker": (
        GOOD
        + """\
worker:
  ssh_hosts: [-oProxy, "a:99999", "a b", ok, ok]
  ssh_strict_host_key_checking: true
  ssh_pass_env: [A-B]
  ssh_secret_delivery: env
  ssh_reattach_ms: 1000
  max_concurrent_agents_per_host: 0
""",
        [
            "W:10:15: worker.ssh_hosts[0]: needs [user@]host[:port] or a name from the ssh "
            'configuration, not the text "-oProxy"',
            "W:10:24: worker.ssh_hosts[1]: needs [user@]host[:port] or a name from the ssh "
            'configuration, not the text "a:99999"',
            "W:10:35: worker.ssh_hosts[2]: needs [user@]host[:port] or a name from the ssh "
            'configuration, not the text "a b"',
            'W:10:46: worker.ssh_hosts[4]: "ok" stands twice',
            "W:11:33: worker.ssh_strict_host_key_checking: needs accept-new, yes or no, not true",
            "W:12:18: worker.ssh_pass_env[0]: "
            'needs the name of an environment variable, not the text "A-B"',
            'W:13:24: worker.ssh_secret_delivery: needs stdin or inline, not the text "env"',
            "W:14:20: worker.ssh_reattach_ms: needs a whole number of milliseconds "
            "from 30000 to 86400000, not 1000",
            "W:15:35: worker.max_concurrent_agents_per_host: "
            "needs a whole number of at least 1, not 0",
        ],
    ),
    "reattach": (
        GOOD + "worker: {ssh_reattach: true, ssh_secret_delivery: inline}",
        ["W:9:24: worker.ssh_reattach: does not go with worker.ssh_secret_delivery: inline"],
    ),
    "logging": (
        GOOD + "logging: {level: warn, format: xml}",
        [
            'W:9:18: logging.level: needs debug, info, warning or error, not the text "warn"',
            'W:9:32: logging.format: needs text or json, not the text "xml"',
        ],
    ),
    "isolation": (
        GOOD + "isolation: bubblewrap",
        [
            'W:9:12: isolation: needs auto, pid-namespace or none, not the text "bubblewrap"',
        ],
    ),
    "tools": (
        GOOD + "tools: [note, issues]",
        [
            "W:9:15: tools[1]: needs one of issue, comment, set_status, ask, note, budget, history,"
            ' pull_request, not the text "issues"'
        ],
    ),
    "tools are a list": (
        GOOD + "tools: some",
        [
            "W:9:8: tools: needs all, or a list of issue, comment, set_status, ask, note, budget,"
            ' history, pull_request, not the text "some"'
        ],
    ),
    "db_path": (GOOD + "db_path: [a]", ["W:9:1: db_path: needs a text, not a list"]),
    "limits": (
        GOOD + "agent: {max_concurrent_agents_by_state: 5}",
        ["W:9:41: agent.max_concurrent_agents_by_state: needs a mapping, not 5"],
    ),
    "long text": (
        GOOD + f"logging: {{level: {'x' * 60}}}",
        [f'W:9:18: logging.level: needs debug, info, warning or error, not the text "{"x" * 39}…"'],
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_front_matter(name: str) -> None:
    """Each mistake is told with its line, column and key; settings exist only without errors."""
    front_matter, expected = BAD[name]

    result = decoded(front_matter)

    assert [str(problem) for problem in result.problems] == expected
    assert result.settings is None


def test_useless_limits_are_ignored_with_a_warning() -> None:
    """Entries that limit nothing are left out; of two spellings of a state the last counts."""
    front_matter = GOOD + (
        "agent: {max_concurrent_agents_by_state: "
        '{Todo: 0, doing: 2, Doing: 3, x: "5", y: true, z: , w: 1.5}}'
    )
    key = "agent.max_concurrent_agents_by_state"
    ignored = "is ignored: a limit is a whole number above 0, not"

    result = decoded(front_matter)

    assert [str(problem) for problem in result.problems] == [
        f"W:9:48: warning: {key}.Todo: {ignored} 0",
        f"W:9:68: warning: {key}.Doing: replaces the limit of the same state above",
        f"W:9:68: warning: {key}.Doing: limits nothing: it is none of active_states; known: Todo",
        f'W:9:74: warning: {key}.x: {ignored} the text "5"',
        f"W:9:82: warning: {key}.y: {ignored} true",
        f"W:9:90: warning: {key}.z: {ignored} nothing",
        f"W:9:96: warning: {key}.w: {ignored} 1.5",
    ]
    assert result.settings is not None
    assert result.settings.agent.max_concurrent_agents_by_state == {"doing": 3}


def test_no_hook_is_given_a_secret() -> None:
    """Whoever names a variable of which the tracker's key or the server's token was taken is told
    so; any other may be named."""
    secret = GOOD.replace("kind: file", "kind: file\n  api_key: a-${KEY}")
    names = "hooks: {pass_env: [CARGO_HOME, KEY, SORTIE_SERVER_AUTH_TOKEN, PATH]}\n"

    found = findings(secret + names, around({"KEY": "a-key"}))

    why = "holds a secret of the tracker or the server, which no hook is given"
    assert found == [
        f"W:10:32: hooks.pass_env[1]: KEY {why}",
        f"W:10:37: hooks.pass_env[2]: SORTIE_SERVER_AUTH_TOKEN {why}",
    ]
