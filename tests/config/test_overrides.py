"""Values from outside WORKFLOW.md."""

from __future__ import annotations

import pytest
from pydantic import SecretStr

from sortie.config.overrides import TARGETS
from tests.config.sample import GOOD, around, decoded, findings, settings_of


def test_every_scalar_and_list_of_five_sections_can_be_overridden() -> None:
    """The names are those of the contract, no more and no less."""
    agent = (
        "COMMAND INACTIVE_GRACE_MS KIND MAX_CONCURRENT_AGENTS MAX_COST_USD MAX_CREDITS "
        "MAX_HOPS MAX_RETRY_BACKOFF_MS MAX_SESSIONS MAX_TOKENS MAX_TURNS READ_TIMEOUT_MS "
        "STALL_TIMEOUT_MS STATUS_INSTRUCTIONS STOP_GRACE_MS TURN_TIMEOUT_MS"
    )
    tracker = (
        "ACTIVE_STATES API_KEY COMMENTS_ON_COMPLETION COMMENTS_ON_DISPATCH COMMENTS_ON_FAILURE "
        "ENDPOINT HANDOFF_STATE IN_PROGRESS_STATE KIND LABEL_STATES PROJECT QUERY_FILTER "
        "REQUIRED_LABELS TERMINAL_STATES"
    )

    assert set(TARGETS) == {
        "SORTIE_DB_PATH",
        "SORTIE_ISOLATION",
        "SORTIE_POLLING_INTERVAL_MS",
        "SORTIE_WORKSPACE_KEEP_RESCUED_DAYS",
        "SORTIE_WORKSPACE_KEEP_UNPUSHED_DAYS",
        "SORTIE_WORKSPACE_MAX_BYTES",
        "SORTIE_WORKSPACE_MAX_BYTES_EACH",
        "SORTIE_WORKSPACE_ROOT",
        *(f"SORTIE_SERVER_{key}" for key in ("AUTH_TOKEN", "HOST", "PORT", "PUBLIC_URL")),
        *(f"SORTIE_AGENT_{key}" for key in agent.split()),
        *(f"SORTIE_TRACKER_{key}" for key in tracker.split()),
    }


def test_overrides_have_their_types_and_are_literal() -> None:
    """Numbers, booleans and lists are read from text; $VAR is not looked up; ~ is expanded."""
    env = {
        "SORTIE_AGENT_MAX_TURNS": " 7 ",
        "SORTIE_AGENT_MAX_COST_USD": "2.5",
        "SORTIE_AGENT_MAX_CREDITS": "3",
        "SORTIE_AGENT_STALL_TIMEOUT_MS": "-1",
        "SORTIE_AGENT_STATUS_INSTRUCTIONS": "False",
        "SORTIE_AGENT_COMMAND": "my, agent",
        "SORTIE_TRACKER_ACTIVE_STATES": "Todo, In Progress ,",
        "SORTIE_TRACKER_COMMENTS_ON_DISPATCH": "true",
        "SORTIE_TRACKER_PROJECT": "$A",
        "SORTIE_TRACKER_API_KEY": "key-$A",
        "SORTIE_SERVER_AUTH_TOKEN": "token-$A",
        "SORTIE_SERVER_PORT": "7678",
        "SORTIE_WORKSPACE_ROOT": "~/w",
        "SORTIE_DB_PATH": "x/$A",
        "A": "looked up",
    }

    settings = settings_of(GOOD, around(env))

    agent, tracker, server = settings.agent, settings.tracker, settings.server
    assert (agent.max_turns, agent.stall_timeout, agent.command) == (7, -0.001, "my, agent")
    assert (agent.max_cost_usd, agent.max_credits) == (2.5, 3.0)
    assert agent.status_instructions is False
    assert tracker.active_states == ("Todo", "In Progress")
    assert tracker.comments.on_dispatch is True
    assert (tracker.project, tracker.api_key) == ("$A", SecretStr("key-$A"))
    assert (server.auth_token, server.port_given) == (SecretStr("token-$A"), True)
    assert (settings.workspace.root, settings.db_path) == ("/home/me/w", "/srv/x/$A")


def test_the_nearest_source_wins() -> None:
    """Command line, environment, env file, front matter, default; an empty value is none."""
    front_matter = GOOD + "server: {port: 4}"
    everything = around(
        {"SORTIE_SERVER_PORT": "2"},
        env_file={"SORTIE_SERVER_PORT": "3"},
        flags={"server.port": "1"},
    )
    without_flag = around({"SORTIE_SERVER_PORT": "2"}, env_file={"SORTIE_SERVER_PORT": "3"})
    without_env = around({"SORTIE_SERVER_PORT": ""}, env_file={"SORTIE_SERVER_PORT": "3"})
    empty = around({"SORTIE_SERVER_PORT": ""}, env_file={"SORTIE_SERVER_PORT": " "})

    ports = [
        settings_of(front_matter, surroundings).server.port
        for surroundings in (everything, without_flag, without_env, empty)
    ]

    assert ports == [1, 2, 3, 4]
    assert settings_of(GOOD).server.port == 7678


def test_an_override_mends_a_wrong_value() -> None:
    """What is overridden is not looked at."""
    front_matter = GOOD + "agent: {max_turns: many}"

    assert findings(front_matter, around({"SORTIE_AGENT_MAX_TURNS": "3"})) == []


def test_overrides_need_no_front_matter() -> None:
    """An empty front matter can be filled from outside, and warnings are placed in the file."""
    env = {"SORTIE_TRACKER_KIND": "board", "SORTIE_TRACKER_ACTIVE_STATES": "Todo"}

    result = decoded("robot: {trust_all: true}", around(env))

    assert [str(problem) for problem in result.problems] == [
        "W:1:1: warning: tracker.handoff_state: is not set, and agent.max_sessions sets no limit: "
        "an issue that stays active is run without end"
    ]
    assert result.settings is not None


BAD = {
    "environment": (
        around({"SORTIE_AGENT_MAX_TURNS": "many", "SORTIE_SERVER_HOST": "a\x00b"}),
        [
            "environment: SORTIE_SERVER_HOST: contains a NUL character",
            "environment: SORTIE_AGENT_MAX_TURNS: needs a whole number of at least 1, "
            'not the text "many"',
        ],
    ),
    "env file": (
        around(env_file={"SORTIE_POLLING_INTERVAL_MS": "0", "SORTIE_TRACKER_KIND": "jira"}),
        [
            "E:1:1: SORTIE_POLLING_INTERVAL_MS: "
            "needs a whole number of milliseconds of at least 1, not 0",
            'E:2:1: SORTIE_TRACKER_KIND: needs a known kind, not the text "jira"; '
            "known: board, file",
        ],
    ),
    "command line": (
        around(flags={"server.port": "x", "logging.level": "loud"}),
        [
            'command line: server.port: needs a whole number from 0 to 65535, not the text "x"',
            'command line: logging.level: needs debug, info, warning or error, not the text "loud"',
        ],
    ),
    "bytes": (
        around({"SORTIE_AGENT_COMMAND": "\udcff"}),
        ["environment: SORTIE_AGENT_COMMAND: contains bytes that are no UTF-8"],
    ),
    "list": (
        around({"SORTIE_TRACKER_ACTIVE_STATES": "a,b\tc"}),
        [
            "environment: SORTIE_TRACKER_ACTIVE_STATES: needs a text on one line, "
            'not the text "b\\tc"'
        ],
    ),
    "boolean": (
        around({"SORTIE_AGENT_STATUS_INSTRUCTIONS": "1"}),
        [
            "environment: SORTIE_AGENT_STATUS_INSTRUCTIONS: "
            'needs true or false, not the text "1"; '
            "yes, no, on and off are texts in YAML 1.2"
        ],
    ),
    "rule": (
        around({"SORTIE_TRACKER_HANDOFF_STATE": "todo"}),
        [
            'environment: SORTIE_TRACKER_HANDOFF_STATE: "todo" is in active_states; '
            "an issue handed over would run again"
        ],
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_an_error_in_an_override_is_found_where_it_was_made(name: str) -> None:
    """The environment, a line of the env file or the command line is named, not WORKFLOW.md."""
    surroundings, expected = BAD[name]

    assert findings(GOOD, surroundings) == expected


MISSPELT = {
    "SORTIE_POLING_INTERVAL_MS": "SORTIE_POLLING_INTERVAL_MS",
    "SORTIE_DBPATH": "SORTIE_DB_PATH",
    "SORTIE_AGENTS_MAX_TURNS": "SORTIE_AGENT_MAX_TURNS",
    "SORTIE_MAX_TURNS": "SORTIE_AGENT_MAX_TURNS",
    "SORTIE_Agent_Max_Turns": "SORTIE_AGENT_MAX_TURNS",
    "SORTIE_TRAKCER_ACTIVE_STATES": "SORTIE_TRACKER_ACTIVE_STATES",
}


@pytest.mark.parametrize("name", MISSPELT)
def test_a_misspelt_override_is_told_with_the_nearest_name(name: str) -> None:
    """Whatever part of its name is misspelt, in the environment as in the env file."""
    hint = f'sets no setting; did you mean "{MISSPELT[name]}"?'

    problems = [findings(GOOD, around({name: "1"})), findings(GOOD, around(env_file={name: "1"}))]

    assert problems == [
        [f"environment: warning: {name}: {hint}"],
        [f"E:1:1: warning: {name}: {hint}"],
    ]


def test_a_variable_that_is_referred_to_is_no_misspelt_override() -> None:
    """A name like an override's is used on purpose where the front matter looks it up."""
    front_matter = GOOD.replace("kind: file", "kind: file\n  api_key: ${SORTIE_TRACKER_APIKEY}")

    assert findings(front_matter, around({"SORTIE_TRACKER_APIKEY": "hunter2"})) == []


def test_unknown_overrides_are_warned_about() -> None:
    """Names that look like overrides and are none are told; a run's variables are no overrides."""
    env = {
        "SORTIE_AGENT_MAX_TURN": "1",
        "SORTIE_HOOKS_TIMEOUT_MS": "1",
        "SORTIE_WORKSPACE": "/w",
        "SORTIE_RUN_ID": "1",
        "SORTIE_ISSUE_ID": "1",
        "SORTIE_ISSUE_IDENTIFIER": "1",
        "SORTIE_ATTEMPT": "1",
        "SORTIE_SSH_HOST": "h",
        "SORTIE_MY_TOKEN": "t",
        "SORTIE_REGISTRY": "r",
        "SORTIE_ROBOT_MODEL": "m",
    }

    problems = findings(GOOD, around(env, env_file={"SORTIE_LOGGING_LEVEL": "debug"}))

    only = "sets nothing: only tracker, polling, workspace, agent, server, db_path and isolation"
    assert problems == [
        "environment: warning: SORTIE_AGENT_MAX_TURN: sets no setting; did you mean "
        '"SORTIE_AGENT_MAX_TURNS"?',
        f"environment: warning: SORTIE_HOOKS_TIMEOUT_MS: {only} can be set like this",
        f"environment: warning: SORTIE_ROBOT_MODEL: {only} can be set like this",
        f"E:1:1: warning: SORTIE_LOGGING_LEVEL: {only} can be set like this",
    ]
