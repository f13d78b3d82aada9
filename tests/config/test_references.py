"""``$VAR``, ``~`` and relative paths."""

from __future__ import annotations

import pytest
from pydantic import SecretStr

from tests.config.sample import GOOD, Files, around, decoded, findings, settings_of


def test_references_are_looked_up_where_the_contract_says() -> None:
    """Anywhere in api_key; as a whole value in endpoint, project, states, paths and token."""
    env = {"A": "alpha", "B_1": "beta", "ROOT": "/data/root", "REL": "rel"}

    settings = settings_of(
        """
tracker:
  kind: file
  endpoint: $A
  project: ${B_1}
  api_key: x-$A-${B_1}$
  query_filter: $A
  active_states: [$A, Todo]
  in_progress_state: ${A}
  handoff_state: $B_1
  required_labels: [$A]
file: {path: $ROOT, others: [$REL, "~"], password: $A-word}
workspace: {root: ~/w}
server: {auth_token: $A, host: $A, port: 0}
db_path: ${REL}
robot: {trust: [$A]}
""",
        around(env),
    )

    tracker = settings.tracker
    assert (tracker.endpoint, tracker.project, tracker.query_filter) == ("alpha", "beta", "$A")
    assert tracker.api_key == SecretStr("x-alpha-beta$")
    assert tracker.active_states == ("alpha", "Todo")
    assert (tracker.in_progress_state, tracker.handoff_state) == ("alpha", "beta")
    assert tracker.required_labels == ("$A",)
    assert settings.block("file") == Files(
        path="/data/root", others=("/srv/rel", "/home/me"), password=SecretStr("$A-word")
    )
    assert settings.workspace.root == "/home/me/w"
    assert settings.remote_root == "~/w"
    assert settings.server.auth_token == SecretStr("alpha")
    assert settings.server.host == "$A"
    assert settings.db_path == "/srv/rel"
    assert settings.secret_variables == (
        "A",
        "B_1",
        "SORTIE_SERVER_AUTH_TOKEN",
        "SORTIE_TRACKER_API_KEY",
    )


def test_the_env_file_is_asked_for_variables_last() -> None:
    """A variable of the environment wins; an empty one counts as unset."""
    front_matter = GOOD.replace("kind: file", "kind: file\n  project: $SORTIE_P")
    env_file = {"SORTIE_P": "file"}

    projects = [
        settings_of(front_matter, around(env, env_file=env_file)).tracker.project
        for env in ({"SORTIE_P": "env"}, {"SORTIE_P": ""}, {})
    ]

    assert projects == ["env", "file", "file"]


UNSET = "is not set or empty, so the key counts as missing"

WARNED = {
    "unset": (
        GOOD.replace("kind: file", "kind: file\n  project: $NOPE\n  api_key: a$EMPTY"),
        [
            f"W:3:12: warning: tracker.project: $NOPE {UNSET}",
            f"W:4:12: warning: tracker.api_key: $EMPTY {UNSET}",
        ],
    ),
    "unset path with a default": (
        GOOD + "db_path: $NOPE\nworkspace: {root: $NOPE}",
        [
            f"W:9:10: warning: db_path: $NOPE {UNSET}",
            f"W:10:19: warning: workspace.root: $NOPE {UNSET}",
        ],
    ),
    "unset item": (
        GOOD.replace("[Todo]", "[$NOPE, Todo]"),
        [
            "W:3:19: warning: tracker.active_states[0]: $NOPE is not set or empty, "
            "so the item counts as missing"
        ],
    ),
    "unset token": (
        GOOD + "server: {auth_token: $NOPE}",
        [f"W:9:22: warning: server.auth_token: $NOPE {UNSET}"],
    ),
    "two on a line": (
        GOOD.replace("kind: file", "kind: file\n  api_key: $NOPE-${EMPTY}-$HERE"),
        [
            "W:3:12: warning: tracker.api_key: "
            "$NOPE and $EMPTY are not set or empty, so the key counts as missing"
        ],
    ),
    "part of a value": (
        GOOD.replace("path: issues", "path: $HOME/issues").replace(
            "kind: file", "kind: file\n  endpoint: https://$HOST/"
        ),
        [
            "W:3:13: warning: tracker.endpoint: "
            "$HOST is taken as it stands: only a whole value can be a reference",
            "W:7:9: warning: file.path: "
            "$HOME is taken as it stands: only a whole value can be a reference",
        ],
    ),
}


@pytest.mark.parametrize("name", WARNED)
def test_odd_references_are_warned_about(name: str) -> None:
    """What is unset counts as missing, what is not looked up stays; both are said."""
    front_matter, expected = WARNED[name]

    result = decoded(front_matter, around({"EMPTY": "", "HERE": "here"}))

    assert [str(problem) for problem in result.problems] == expected
    assert result.settings is not None


TOO_SHORT = (
    "needs a secret of at least 4 characters; "
    "wherever its text stands, also inside other words, it is hidden"
)

REFUSED = {
    "unset and required": (
        GOOD.replace("issues", "$NOPE"),
        ["W:6:9: file.path: is required, but $NOPE is not set or empty"],
    ),
    "database that must not be another one": (
        GOOD + "store: {url: $NOPE}",
        ["W:9:14: store.url: $NOPE is not set or empty, and nothing else may take its place"],
    ),
    "another user's home": (
        GOOD.replace("issues", "~bob/x") + "  model: a",
        ["W:6:9: file.path: needs a path; only ~ is expanded, not ~bob"],
    ),
    "paths in a list": (
        GOOD.replace("path: issues", "path: a\n  others: [~x, 5, ' ']"),
        [
            "W:7:12: file.others[0]: needs a path; only ~ is expanded, not ~x",
            "W:7:16: file.others[1]: needs a text, not 5; put it in quotes",
            "W:7:19: file.others[2]: must not be blank",
        ],
    ),
    "token in the file": (
        GOOD + "server: {auth_token: hunter2$TOKEN}",
        [
            "W:9:22: server.auth_token: needs a reference such as $TOKEN; "
            "the token itself must not stand in the file"
        ],
    ),
    "short secrets": (
        GOOD.replace("kind: file", "kind: file\n  api_key: ' abc '")
        + "server: {auth_token: $SHORT}",
        [
            f"W:3:12: tracker.api_key: {TOO_SHORT}",
            f"W:10:22: server.auth_token: {TOO_SHORT}",
        ],
    ),
    "bytes that are no text": (
        GOOD.replace("kind: file", "kind: file\n  project: $BYTES"),
        ["W:3:12: tracker.project: $BYTES holds bytes that are no UTF-8"],
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_references_that_cannot_be_used_are_errors(name: str) -> None:
    """The error stands where the reference was written, and shows no secret."""
    front_matter, expected = REFUSED[name]

    assert findings(front_matter, around({"BYTES": "\udcff", "SHORT": "x"})) == expected


def test_without_a_home_paths_must_be_whole() -> None:
    """Without HOME ~ is an error, and so is leaving out workspace.root."""
    front_matter = GOOD.replace("issues", "~/issues")

    problems = findings(front_matter, around(home=""))

    assert problems == [
        "W:1:1: workspace.root: has no default where HOME is not set; "
        "write the directory's whole path",
        "W:6:9: file.path: begins with ~, but HOME is not set; write the whole path",
    ]


def test_a_wrong_root_is_not_missed_as_well() -> None:
    """Without HOME a wrong workspace.root is told once."""
    problems = findings(GOOD + "workspace: {root: 5}", around(home=""))

    assert problems == ["W:9:19: workspace.root: needs a text, not 5; put it in quotes"]


def test_the_state_directory_may_be_chosen() -> None:
    """XDG_STATE_HOME moves the default root; a relative one is ignored, as its makers say."""
    roots = [
        settings_of(GOOD, around({"XDG_STATE_HOME": value})).workspace.root.rpartition("/")[0]
        for value in ("/var/state", "state")
    ]

    assert roots == ["/var/state/sortie/workspaces", "/home/me/.local/state/sortie/workspaces"]


def test_what_a_secret_is_put_together_from_is_secret_too() -> None:
    """Of a key made of several variables each is one, but for what is no longer than a name."""
    front_matter = GOOD.replace("kind: file", "kind: file\n  api_key: $NAME:$TOKEN")

    settings = settings_of(front_matter, around({"NAME": "someone", "TOKEN": "correct horse"}))

    assert settings.tracker.api_key == SecretStr("someone:correct horse")
    assert settings.secret_parts == (SecretStr("correct horse"),)
