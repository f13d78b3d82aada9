"""Rules about several settings."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from sortie.config.decode import decode
from sortie.config.report import Finding
from sortie.config.schemas import AgentSchema, Schemas, TrackerSchema
from sortie.config.settings import AgentSettings, TrackerSettings
from tests.config.sample import (
    GOOD,
    SCHEMAS,
    Board,
    Files,
    Robot,
    around,
    decoded,
    findings,
    tree,
)

STATES = """\
tracker:
  kind: board
  active_states: {active}
  terminal_states: {terminal}
  in_progress_state: {start}
  handoff_state: {handoff}
robot: {{trust_all: true}}
"""


def states(active: str, terminal: str, start: str = "", handoff: str = "Review") -> list[str]:
    """Return what is found about these states."""
    return findings(STATES.format(active=active, terminal=terminal, start=start, handoff=handoff))


def test_states_that_go_together() -> None:
    """Case and white space do not matter, and a state elsewhere is a handoff state."""
    assert states("[Todo, Doing]", "[Done]", "' doing '", "Review") == []


BAD_STATES = {
    "both empty": (
        ("[]", "[]"),
        [
            "W:3:3: tracker.active_states: is empty, and so is terminal_states; "
            "name the states in which agents work"
        ],
    ),
    "none active": (
        ("[]", "[Done]"),
        ["W:3:3: warning: tracker.active_states: is empty, so no issue will be worked on"],
    ),
    "overlap": (
        ("[Todo, Done]", "[Closed, ' DONE ', todo]"),
        [
            'W:4:29: tracker.terminal_states[1]: "DONE" is in active_states too; '
            "a state is one or the other",
            'W:4:39: tracker.terminal_states[2]: "todo" is in active_states too; '
            "a state is one or the other",
        ],
    ),
    "start is not active": (
        ("[Todo]", "[Done]", "Doing"),
        [
            'W:5:22: tracker.in_progress_state: "Doing" is not in active_states; '
            "a run would stop itself"
        ],
    ),
    "handoff is active": (
        ("[Todo]", "[Done]", "", "todo"),
        [
            'W:6:18: tracker.handoff_state: "todo" is in active_states; '
            "an issue handed over would run again"
        ],
    ),
    "handoff is terminal": (
        ("[Todo]", "[Done]", "", "done"),
        [
            'W:6:18: tracker.handoff_state: "done" is in terminal_states; '
            "its workspace would be removed unseen"
        ],
    ),
    "nothing ends it": (
        ("[Todo]", "[Done]", "", ""),
        [
            "W:1:1: warning: tracker.handoff_state: is not set, and agent.max_sessions sets no "
            "limit: an issue that stays active is run without end"
        ],
    ),
    "a wrong item is not blamed for more, and hides nothing": (
        ("[Todo, 5]", "[todo]", "Doing", "todo"),
        [
            "W:3:25: tracker.active_states[1]: needs a text, not 5; put it in quotes",
            'W:4:21: tracker.terminal_states[0]: "todo" is in active_states too; '
            "a state is one or the other",
            'W:6:18: tracker.handoff_state: "todo" is in active_states; '
            "an issue handed over would run again",
        ],
    ),
}


@pytest.mark.parametrize("name", BAD_STATES)
def test_states_that_do_not_go_together(name: str) -> None:
    """Each conflict is told at the setting that has to change."""
    given, expected = BAD_STATES[name]

    assert states(*given) == expected


def test_a_place_in_a_list_is_that_in_the_file() -> None:
    """Items that count as missing do not move the numbers of those after them."""
    assert states("[Todo]", "[$NOPE, todo]")[1:] == [
        'W:4:28: tracker.terminal_states[1]: "todo" is in active_states too; '
        "a state is one or the other"
    ]


def test_a_limit_of_sessions_ends_it_too() -> None:
    """With max_sessions no handoff state is missed."""
    front_matter = GOOD.replace("  handoff_state: Review\n", "") + "agent: {max_sessions: 2}"

    assert findings(front_matter) == []


def test_a_limit_to_what_an_agent_never_tells_is_told() -> None:
    """It would look like a safeguard and be none."""
    limits = "agent: {max_tokens: 5, max_credits: 0.5, max_cost_usd: 1}"

    assert findings(GOOD + limits) == [
        "W:9:21: warning: agent.max_tokens: limits nothing: a kiro agent reports no tokens"
    ]


@pytest.mark.parametrize(
    ("limits", "problem"),
    [
        ("max_credits: -1", "agent.max_credits: needs a number of at least 0, not -1"),
        (
            "max_cost_usd: cheap",
            'agent.max_cost_usd: needs a number of at least 0, not the text "cheap"',
        ),
        (
            "max_cost_usd: true",
            "agent.max_cost_usd: needs a number of at least 0, not true",
        ),
        ("max_tokens: 1.5", "agent.max_tokens: needs a whole number of at least 0, not 1.5"),
    ],
)
def test_a_limit_is_a_number(limits: str, problem: str) -> None:
    """Each has its place."""
    (found,) = findings(GOOD + "agent: {" + limits + "}")

    assert found.startswith("W:9:")
    assert problem in found


def test_rates_of_models_have_their_places() -> None:
    """Unknown keys, missing ones and wrong numbers are told where they stand."""
    rates = (
        "token_rates:\n  big: {input: 1}\n  small: {input: 1, output: -2, outptu: 3}\n  bad: 7\n"
    )

    assert findings(GOOD + rates) == [
        "W:10:3: token_rates.big.output: is required",
        "W:11:29: token_rates.small.output: needs a number of at least 0, not -2",
        'W:11:33: token_rates.small.outptu: unknown key; did you mean "output"?',
        "W:12:8: token_rates.bad: needs a mapping, not 7",
    ]


def test_no_host_is_called_as_this_machine_is() -> None:
    """Its runs would be here, however the ssh configuration explains the name."""
    assert findings(GOOD + "worker: {ssh_hosts: [a, local]}") == [
        'W:9:25: worker.ssh_hosts[1]: "local" means this machine everywhere;'
        " give the host another alias"
    ]


def test_hosts_stand_once() -> None:
    """A host that is listed twice would get twice its share."""
    assert findings(GOOD + "worker: {ssh_hosts: [a, b, a]}") == [
        'W:9:28: worker.ssh_hosts[2]: "a" stands twice'
    ]


def test_a_server_for_others_needs_a_token() -> None:
    """A host that is not loopback is an error without a given token, unless there is no server."""
    open_to_all = GOOD + "server: {host: 0.0.0.0}"
    error = (
        'W:9:16: server.host: "0.0.0.0" can be reached from outside, which needs '
        "server.auth_token: set it to a reference such as $TOKEN, "
        "or set SORTIE_SERVER_AUTH_TOKEN"
    )

    assert findings(open_to_all) == [error]
    assert findings(open_to_all, around({"SORTIE_SERVER_AUTH_TOKEN": "token"})) == []
    assert findings(GOOD + "server: {host: 0.0.0.0, port: 0}") == []
    assert findings(GOOD + "server: {host: 0.0.0.0, auth_token: $T}", around({"T": "token"})) == []


def test_only_the_chosen_agent_warns() -> None:
    """An adapter's warnings stand at the key they are about, and only if its block is right."""
    untrusting = GOOD.replace("trust_all: true", "trust: []")

    assert findings(untrusting) == ["W:8:3: warning: robot.trust: trusts nothing"]
    assert decoded(untrusting).settings is not None
    assert findings(untrusting + "  model: 5") == [
        "W:9:10: robot.model: needs a text, not 5; put it in quotes"
    ]


def test_a_wrong_item_does_not_postpone_what_is_wrong_with_others() -> None:
    """Each item of a list is looked at, whatever is wrong with those before and behind it."""
    hosts = "worker: {ssh_hosts: ['a b', local, box, 7, box]}"

    assert findings(GOOD + hosts) == [
        "W:9:22: worker.ssh_hosts[0]: needs [user@]host[:port] or a name from the ssh "
        'configuration, not the text "a b"',
        'W:9:29: worker.ssh_hosts[1]: "local" means this machine everywhere; '
        "give the host another alias",
        "W:9:41: worker.ssh_hosts[3]: needs a text, not 7; put it in quotes",
        'W:9:44: worker.ssh_hosts[4]: "box" stands twice',
    ]


def test_limits_for_states_that_no_setting_names_are_told() -> None:
    """A limit for a state in which no agent works limits nothing; the nearest state is named."""
    limits = "agent: {max_concurrent_agents_by_state: {todo: 1, Toodo: 2, Review: 3}}"
    key = "agent.max_concurrent_agents_by_state"

    assert findings(GOOD + limits) == [
        f"W:9:58: warning: {key}.Toodo: limits nothing: it is none of active_states; "
        'did you mean "Todo"?',
        f"W:9:69: warning: {key}.Review: limits nothing: it is none of active_states; known: Todo",
    ]


def _hub_check(tracker: TrackerSettings, board: Board) -> Iterator[Finding]:
    for position, state in enumerate(tracker.active_states):
        if "," in state:
            yield Finding(path=("tracker", "active_states", position), message="has a comma")
    if tracker.project == "wide" and board.columns < 5:
        yield Finding(path=("hub", "columns"), message="is too few", severity="warning")


HUB = Schemas(
    agents=SCHEMAS.agents,
    trackers={
        "hub": TrackerSchema(
            block_name="hub",
            model=Board,
            required=frozenset({"project", "api_key"}),
            known=frozenset({"endpoint"}),
            has_labels=False,
            check=_hub_check,
        )
    },
)
BOTH = Schemas(
    agents=SCHEMAS.agents,
    trackers={
        "file": TrackerSchema(block_name="file", model=Files, has_label_states=True),
    },
)


def test_a_state_that_is_a_label_is_no_end_and_stands_once() -> None:
    """Each is told where it stands in the list; a rule may name them, and not set them."""
    text = """\
robot: {trust_all: true}
file: {path: issues}
tracker:
  kind: file
  active_states: [Todo, build]
  terminal_states: [Done]
  label_states: [check, done, build, CHECK]
  handoff_state: Review
rules:
  - tracker: {active_states: [check], label_states: [check]}
"""

    found = decode(tree(text), schemas=BOTH, context=around()).problems

    assert [str(problem) for problem in found] == [
        'W:7:25: tracker.label_states[1]: "done" is in terminal_states; '
        "only a state of the tracker's own ends issues",
        'W:7:38: tracker.label_states[3]: "CHECK" stands twice',
        "W:10:39: rules[0].tracker.label_states: cannot be set by a rule",
    ]


HUB_WORKFLOW = """\
robot: {{trust_all: true}}
tracker:
  kind: hub
  active_states: [Todo]
  handoff_state: Review
{keys}"""


def test_an_adapter_tells_what_is_wrong_with_its_settings_at_their_places() -> None:
    """They stand where the settings were written; nobody asks an adapter that is not chosen."""
    text = """\
robot: {trust_all: true}
tracker:
  kind: hub
  active_states: [Todo, "In, out"]
  handoff_state: Review
  project: wide
  api_key: $KEY
hub: {columns: 4}
"""

    found = decode(tree(text), schemas=HUB, context=around({"KEY": "0123456789"})).problems

    assert [str(problem) for problem in found] == [
        "W:4:25: tracker.active_states[1]: has a comma",
        "W:8:16: warning: hub.columns: is too few",
    ]
    assert findings(GOOD) == []


@pytest.mark.parametrize(
    ("keys", "found"),
    [
        ("  project: p\n  api_key: $KEY\n  endpoint: https://example.org\n", []),
        (
            "  endpoint: https://example.org\n",
            [
                "W:3:3: tracker.api_key: is required by the hub tracker",
                "W:3:3: tracker.project: is required by the hub tracker",
            ],
        ),
        (
            "  api_key: $KEY\n  project: $UNSET\n",
            [
                "W:3:3: tracker.project: is required by the hub tracker",
                "W:7:12: warning: tracker.project: $UNSET is not set or empty, so the key counts "
                "as missing",
            ],
        ),
        (
            "  api_key: $KEY\n  project: 7\n",
            ["W:7:12: tracker.project: needs a text, not 7; put it in quotes"],
        ),
        (
            "  project: p\n  api_key: $KEY\n  query_filter: is:open\n",
            [
                "W:8:17: warning: tracker.query_filter: means nothing to the hub tracker, "
                "and is ignored"
            ],
        ),
        (
            "  project: p\n  api_key: $KEY\n  required_labels: [agent]\n",
            [
                "W:8:3: tracker.required_labels: would keep every issue from being worked on: "
                "the hub tracker has no labels"
            ],
        ),
        (
            "  project: p\n  api_key: $KEY\n  label_states: [build]\n",
            [
                "W:8:3: tracker.label_states: means nothing to the hub tracker: only a tracker "
                "with few states of its own keeps others as labels; remove it, and name the "
                "states where they are used"
            ],
        ),
    ],
)
def test_a_tracker_says_which_keys_it_needs_and_knows(keys: str, found: list[str]) -> None:
    """What is missing is told where the block stands, once; what means nothing is a warning."""
    result = decode(
        tree(HUB_WORKFLOW.format(keys=keys)), schemas=HUB, context=around({"KEY": "hunter2hunter2"})
    )

    assert [str(problem) for problem in result.problems] == found


def _robot_check(agent: AgentSettings, robot: Robot) -> Iterator[Finding]:
    if agent.max_turns > 1 and not robot.trust_all:
        message = f"is not set for {agent.max_turns} turns"
        yield Finding(path=("robot", "trust_all"), message=message, needs=(("agent", "max_turns"),))


@pytest.mark.parametrize(
    ("keys", "found"),
    [
        ("agent: {max_turns: 1}\nrobot: {trust: [a]}\n", []),
        (
            "agent: {max_turns: 2}\nrobot: {trust: [a]}\n",
            ["W:2:1: robot.trust_all: is not set for 2 turns"],
        ),
        (
            "agent: {max_turns: no}\nrobot: {trust: [a]}\n",
            ['W:1:20: agent.max_turns: needs a whole number of at least 1, not the text "no"'],
        ),
    ],
)
def test_an_agent_is_asked_beside_the_settings_of_agents(keys: str, found: list[str]) -> None:
    """What is wrong is told at its place, unless what it depends on is wrong itself."""
    robot = AgentSchema(block_name="robot", model=Robot, check=_robot_check)
    schemas = Schemas(agents={"kiro": robot}, trackers=SCHEMAS.trackers)
    text = f"{keys}{GOOD.replace('robot:', 'unknown:')}"

    problems = decode(tree(text), schemas=schemas, context=around()).problems

    assert [str(p) for p in problems if p.severity == "error"] == found


TRUST = (
    GOOD
    + """\
trust:
  authors: {authors}
  comments: {comments}
"""
)


@pytest.mark.parametrize(
    ("authors", "comments", "found"),
    [
        ("anyone", "", []),
        ("[ann]", "anyone", []),
        (
            "write",
            "members",
            [
                'trust.authors: "write" cannot be told by the file tracker;'
                " use a list of names or anyone (because of tracker.kind)",
                'trust.comments: "members" cannot be told by the file tracker;'
                " use a list of names or anyone (because of tracker.kind)",
            ],
        ),
        ("writers", "", ["trust.authors: needs write, members, anyone or a list of names"]),
        ("[]", "", ["trust.authors: needs write, members, anyone or a list of names"]),
    ],
)
def test_a_right_that_a_tracker_never_tells_is_an_error(
    authors: str, comments: str, found: list[str]
) -> None:
    """Nothing would ever be started, or everything."""
    told = findings(TRUST.format(authors=authors, comments=comments))

    assert len(told) == len(found)
    for one, start in zip(told, found, strict=True):
        assert start.split(" (because")[0].split(";")[0] in one
