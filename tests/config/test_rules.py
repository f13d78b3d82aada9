"""Rules are laid over the top level and decoded as that is; their problems have places."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sortie.config.decode import decode
from sortie.config.rules import Conditions, PriorityCondition, StageSettings
from sortie.config.settings import Settings
from sortie.documents import Node, Place
from tests.config.sample import GOOD, SCHEMAS, around, findings, settings_of

CANNOT = "cannot be set by a rule"


def rules(*items: str, top: str = "") -> list[str]:
    """Return what is wrong with rules, each on a line of its own, from line 11 on."""
    return findings(front_matter(*items, top=top))


def front_matter(*items: str, top: str = "") -> str:
    """Return a good top level, a line of it, and rules."""
    head = GOOD + (top or "# nothing") + "\nrules:\n"
    assert head.count("\n") == 10
    return head + "".join(f"  - {item}\n" for item in items)


def of_rules(*items: str, top: str = "") -> tuple[Settings, ...]:
    """Return the settings of rules that have no error."""
    return tuple(rule.settings for rule in settings_of(front_matter(*items, top=top)).rules)


def test_every_condition_is_decoded() -> None:
    """A text is a list of one, and absent keys ask for nothing."""
    written = (
        "{labels: docs, states: [Todo], issue_type: [Bug, Task], identifier: 'A-*', assignee: ann,"
        " title: [typo, ' two words '], author: [ann, bob],"
        " priority: {eq: 2, in: [1, 2], lt: 5, lte: 4, gt: 0, gte: 1}}"
    )

    settings = settings_of(front_matter(f"{{name: one, when: {written}}}", "{name: two}"))

    assert [rule.when for rule in settings.rules] == [
        Conditions(
            labels=("docs",),
            states=("Todo",),
            issue_type=("Bug", "Task"),
            identifier=("A-*",),
            assignee=("ann",),
            title=("typo", "two words"),
            author=("ann", "bob"),
            priority=PriorityCondition(
                **{"eq": 2, "in": (1, 2), "lt": 5, "lte": 4, "gt": 0, "gte": 1}
            ),
        ),
        Conditions(),
    ]


@pytest.mark.parametrize(
    ("bounds", "fits"),
    [
        ({"eq": 2}, {2}),
        ({"in": (1, 3)}, {1, 3}),
        ({"lt": 2}, {0, 1}),
        ({"lte": 2}, {0, 1, 2}),
        ({"gt": 2}, {3, 4}),
        ({"gte": 2}, {2, 3, 4}),
        ({"gt": 0, "lt": 3}, {1, 2}),
        ({}, {None, 0, 1, 2, 3, 4}),
    ],
    ids=str,
)
def test_priorities_fit_all_that_is_named(bounds: Mapping[str, Any], fits: set[int | None]) -> None:
    """An issue without a priority fits only where nothing is asked."""
    asked = PriorityCondition(**bounds)

    assert {n for n in (None, 0, 1, 2, 3, 4) if asked.includes(n)} == fits


def test_the_keys_of_a_rule_itself_are_decoded() -> None:
    """Name, shares, prompt, stage: as written, or their defaults."""
    one, two = settings_of(
        front_matter(
            "{name: docs, prompt: docs, max_concurrent_agents: 2, guaranteed: 1, burst_to: 4,"
            " when: {labels: x}, stage: {conversation: continue, result: out/plan.md}}",
            "{agent: {max_turns: 1}}",
        )
    ).rules

    assert (one.name, one.max_concurrent_agents, one.guaranteed, one.burst_to) == ("docs", 2, 1, 4)
    assert one.stage == StageSettings(conversation="continue", result="out/plan.md")
    assert (two.name, two.max_concurrent_agents, two.guaranteed, two.burst_to) == (
        "rule-2",
        None,
        0,
        None,
    )
    told = [(s.rule, s.prompt, s.stage_result) for s in (one.settings, two.settings)]
    assert told == [("docs", "docs", "out/plan.md"), ("rule-2", "", ".sortie/result.md")]


def test_a_rule_is_merged_key_by_key() -> None:
    """Mappings are merged to any depth, lists are replaced, and the top level stays as it was."""
    top = "verify: {commands: [a, b], rounds: 7}"
    item = (
        "{verify: {commands: [c]}, agent: {max_turns: 2},"
        " tracker: {comments: {on_failure: true}, active_states: [Doing]}}"
    )

    whole = settings_of(front_matter(item, top=top))
    (rule,) = (rule.settings for rule in whole.rules)

    assert (whole.verify.commands, whole.agent.max_turns) == (("a", "b"), 5)
    assert (rule.verify.commands, rule.verify.rounds, rule.agent.max_turns) == (("c",), 7, 2)
    assert rule.tracker.comments.on_failure
    assert (rule.tracker.active_states, rule.tracker.handoff_state) == (("Doing",), "Review")
    assert whole.tracker.active_states == ("Todo",)
    assert whole.active_states == ("Todo", "Doing")


def test_null_takes_a_key_away() -> None:
    """What is taken away has its default; a block without a value is none."""
    first, second, third = of_rules(
        "{when: {labels: a}, verify: {rounds: null}}",
        "{when: {labels: b}, verify: null}",
        "{when: {labels: c}, verify: {where: workspace}}",
        top="verify: {commands: [a], rounds: 7}",
    )

    assert (first.verify.commands, first.verify.rounds) == (("a",), 3)
    assert (second.verify.commands, second.verify.rounds) == ((), 3)
    assert (third.verify.commands, third.verify.where) == (("a",), "workspace")


def test_null_takes_away_what_means_something_by_being_there() -> None:
    """A rule can do without the review of the top level."""
    (settings,) = of_rules("{self_review: null}", top="self_review: {rounds: 1}")

    assert settings.self_review is None


def test_rules_need_a_list_of_mappings() -> None:
    """What is no rule is told by its number, and the others are decoded all the same."""
    assert findings(GOOD + "rules: 3") == ["W:9:8: rules: needs a list of rules, not 3"]
    assert rules("just text", "{agent: {max_turns: x}}") == [
        'W:11:5: rules[0]: needs a mapping, not the text "just text"',
        'W:12:25: rules[1].agent.max_turns: needs a whole number of at least 1, not the text "x"',
    ]


@pytest.mark.parametrize(
    ("item", "problem"),
    [
        ("{nme: x}", '11:6: rules[0].nme: unknown key; did you mean "name"?'),
        ("{polling: {interval_ms: 1}}", f"11:6: rules[0].polling: {CANNOT}"),
        ("{workspace: {root: /x}}", f"11:6: rules[0].workspace: {CANNOT}"),
        ("{reactions: {}}", f"11:6: rules[0].reactions: {CANNOT}"),
        ("{db_path: x}", f"11:6: rules[0].db_path: {CANNOT}"),
        ("{token_rates: {}}", f"11:6: rules[0].token_rates: {CANNOT}"),
        ("{file: {path: other}}", f"11:6: rules[0].file: {CANNOT}"),
        ("{rules: []}", f"11:6: rules[0].rules: {CANNOT}"),
        ("{tracker: {kind: board}}", f"11:16: rules[0].tracker.kind: {CANNOT}"),
        ("{tracker: {terminal_states: [X]}}", f"11:16: rules[0].tracker.terminal_states: {CANNOT}"),
        (
            "{agent: {max_concurrent_agents: 2}}",
            "11:14: rules[0].agent.max_concurrent_agents: stands in the rule itself, not in its"
            " agent",
        ),
        (
            "{agent: {max_concurrent_agents_by_state: {Todo: 1}}}",
            f"11:14: rules[0].agent.max_concurrent_agents_by_state: {CANNOT}",
        ),
        (
            "{agent: {max_turn: 2}}",
            '11:14: rules[0].agent.max_turn: unknown key; did you mean "max_turns"?',
        ),
        (
            "{agent: {kind: nobody}}",
            '11:20: rules[0].agent.kind: needs a known kind, not the text "nobody"; known: kiro',
        ),
        (
            "{robot: {trust: [a]}}",
            "11:14: rules[0].robot.trust: trust_all and trust exclude each other",
        ),
        (
            "{tracker: {handoff_state: Todo}}",
            '11:31: rules[0].tracker.handoff_state: "Todo" is in active_states',
        ),
        ("{when: {label: a}}", '11:13: rules[0].when.label: unknown key; did you mean "labels"?'),
        ("{when: {labels: []}}", "11:13: rules[0].when.labels: needs a text or a list of texts"),
        ("{when: {labels: 3}}", "11:21: rules[0].when.labels: needs a text or a list of texts"),
        ("{when: {labels: [a, 3]}}", "11:25: rules[0].when.labels[1]: needs a text on one line"),
        ("{when: {title: ' '}}", "11:20: rules[0].when.title: needs a text on one line"),
        (
            "{when: {priority: {in: 3}}}",
            "11:28: rules[0].when.priority.in: needs a list of whole numbers",
        ),
        ("{name: default}", "11:12: rules[0].name: needs letters, digits, - and _"),
        ("{name: a b}", "11:12: rules[0].name: needs letters, digits, - and _"),
        ("{guaranteed: -1}", "11:18: rules[0].guaranteed: needs a whole number of at least 0"),
        ("{stage: {result: ../x}}", "11:22: rules[0].stage.result: needs a path in the workspace"),
        ("{stage: {conversation: new}}", "11:28: rules[0].stage.conversation: needs fresh or"),
    ],
)
def test_errors_of_a_rule_have_their_place(item: str, problem: str) -> None:
    """One error each, at the key or value that is wrong, under the name that it has in the list."""
    (found,) = rules(item)

    assert found.startswith(f"W:{problem}")


def test_what_the_top_level_has_too_is_told_once() -> None:
    """A mistake that every rule inherits is told once, beside those of a rule's own."""
    assert rules("{when: {labels: a}}", "{agent: {max_turns: 0}}", top="verify: {rounds: x}") == [
        'W:9:18: verify.rounds: needs a whole number from 0 to 100, not the text "x"',
        "W:12:25: rules[1].agent.max_turns: needs a whole number of at least 1, not 0",
    ]


def test_two_rules_cannot_have_one_name() -> None:
    """Nor can a name be that which another has by its place."""
    twice = rules("{name: a, when: {labels: a}}", "{name: a}")
    by_place = rules("{name: rule-2, when: {labels: a}}", "{agent: {max_turns: 2}}")

    assert twice == ['W:12:12: rules[1].name: "a" is the name of an earlier rule']
    assert by_place == ['W:12:5: rules[1].name: "rule-2" is the name of an earlier rule']


HOSTS = "worker: {ssh_hosts: [build-1, build-2]}"


def test_a_rule_is_on_some_of_the_hosts() -> None:
    """A text is one of them; without hosts there is this machine alone."""
    one, two, every = of_rules(
        "{hosts: build-2, when: {labels: a}}",
        "{hosts: [build-2, build-1], when: {labels: b}}",
        "{when: {labels: c}}",
        top=HOSTS,
    )
    (here,) = of_rules("{hosts: local}")

    assert [s.worker.ssh_hosts for s in (one, two, every, here)] == [
        ("build-2",),
        ("build-2", "build-1"),
        ("build-1", "build-2"),
        (),
    ]


def test_other_hosts_are_errors() -> None:
    """A host that the workers do not have is told at its item."""
    assert rules("{hosts: [build-1, other]}", top=HOSTS) == [
        'W:11:23: rules[0].hosts: needs one of worker.ssh_hosts, not the text "other"'
    ]
    (found,) = rules("{hosts: other}")
    assert found.endswith('needs one of worker.ssh_hosts, not the text "other"; none is named')


@pytest.mark.parametrize(
    ("shares", "problem"),
    [
        ("{max_concurrent_agents: 2, guaranteed: 2, burst_to: 2}", None),
        (
            "{max_concurrent_agents: 1, guaranteed: 2}",
            "guaranteed: is more than the rule's max_concurrent_agents, 1",
        ),
        (
            "{max_concurrent_agents: 3, burst_to: 2}",
            "burst_to: is less than the rule's max_concurrent_agents, 3",
        ),
        ("{burst_to: 2}", "burst_to: means nothing without max_concurrent_agents of the rule"),
    ],
)
def test_shares_have_to_fit_together(shares: str, problem: str | None) -> None:
    """guaranteed <= max_concurrent_agents <= burst_to."""
    found = [text.partition("rules[0].")[2] for text in rules(shares)]

    assert found == ([] if problem is None else [problem])


def test_no_more_is_guaranteed_than_there_is() -> None:
    """The rule with which the sum becomes too large is told."""
    shares = [f"{{guaranteed: 2, when: {{labels: {name}}}}}" for name in "abc"]

    assert rules(*shares, top="agent: {max_concurrent_agents: 6}") == []
    assert rules(*shares, top="agent: {max_concurrent_agents: 5}") == [
        "W:13:18: rules[2].guaranteed: with those above, 6 slots are guaranteed, and"
        " agent.max_concurrent_agents allows 5"
    ]


@pytest.mark.parametrize(
    ("when", "why"),
    [
        ("{states: Doing}", "none of when.states is an active state"),
        ("{priority: {lt: 2, gt: 1}}", "no priority is lt 2, gt 1"),
        ("{priority: {eq: 1, in: [2]}}", "no priority is eq 1, in [2]"),
    ],
)
def test_a_rule_that_never_matches_is_a_warning(when: str, why: str) -> None:
    """Nothing is an error: it does no harm."""
    assert rules(f"{{when: {when}}}") == [
        f"W:11:6: warning: rules[0].when: the rule can never match: {why}"
    ]


def test_conditions_that_may_be_met_are_no_warning() -> None:
    """A range with one number in it, and a state of the rule's own."""
    assert rules("{when: {priority: {lt: 3, gt: 1}}}") == []
    assert rules("{when: {states: doing}, tracker: {active_states: [Doing]}}") == []


HIDING = [
    ("{}", "{labels: a}"),
    ("{labels: a}", "{labels: A}"),
    ("{labels: [a, b]}", "{labels: b, states: Todo}"),
    ("{labels: 'area/*'}", "{labels: [area/x, area/y]}"),
    ("{identifier: 'A-*'}", "{identifier: A-1}"),
    ("{priority: {lte: 3}}", "{priority: {in: [1, 2]}}"),
    ("{priority: {}}", "{priority: {eq: 1}}"),
    ("{title: a}", "{title: a, author: x}"),
]
OPEN = [
    ("{labels: a}", "{}"),
    ("{labels: a}", "{labels: [a, b]}"),
    ("{labels: area/x}", "{labels: 'area/*'}"),
    ("{labels: 'a?'}", "{labels: ab}"),
    ("{priority: {lte: 2}}", "{priority: {lte: 3}}"),
    ("{priority: {lte: 2}}", "{}"),
    ("{labels: a, assignee: x}", "{labels: a}"),
    ("{states: Todo}", "{states: Doing}"),
]


@pytest.mark.parametrize(("first", "second"), HIDING)
def test_a_hidden_rule_is_a_warning(first: str, second: str) -> None:
    """A rule whose every issue an earlier one takes is never reached."""
    assert rules(f"{{name: one, when: {first}}}", f"{{when: {second}}}") == [
        "W:12:6: warning: rules[1].when: the rule is never reached: "
        '"one" above matches all that it would'
    ]


@pytest.mark.parametrize(("first", "second"), OPEN)
def test_a_rule_that_is_reached_is_no_warning(first: str, second: str) -> None:
    """Also where it only may be: nothing is said that is not certain."""
    states = "tracker: {active_states: [Todo, Doing]}"

    assert rules(f"{{when: {first}, {states}}}", f"{{when: {second}, {states}}}") == []


def stage(name: str, state: str, to: str, when: str = "{}") -> str:
    return (
        f"{{name: {name}, when: {when},"
        f" tracker: {{active_states: [{state}], handoff_state: {to}}}}}"
    )


def test_stages_that_lead_back_are_an_error() -> None:
    """The whole way is told, once, at the first rule of it."""
    found = rules(stage("a", "A", "B"), stage("b", "B", "C"), stage("c", "C", "A"))

    (problem,) = found
    assert problem.startswith("W:11:")
    assert "rules[0].tracker.handoff_state: the stages lead back" in problem
    assert problem.endswith('"a" -> "b" -> "c" -> "a"')


def test_stages_that_end_are_right() -> None:
    """With a person at the end, or where no issue can be for both."""
    assert rules(stage("a", "A", "B"), stage("b", "B", "C"), stage("c", "C", "D")) == []
    assert rules(stage("a", "A", "B", "{assignee: x}"), stage("b", "B", "A", "{assignee: y}")) == []


def test_secrets_of_a_rule_are_hidden_everywhere() -> None:
    """Whatever a run may meet, the variables of all rules hold secrets for it."""
    whole = settings_of(
        front_matter(
            "{repository: {url: 'https://git.example/x', credential: $TOKEN}, forge: {kind: none}}"
        ),
        around({"TOKEN": "a secret of some length"}),
    )

    assert "TOKEN" in whole.secret_variables
    assert all(s.secret_variables == whole.secret_variables for s in whole.every())


def test_overrides_win_over_rules() -> None:
    """Who sets a variable means the runs of all rules."""
    whole = settings_of(
        front_matter("{agent: {max_turns: 2}}"), around({"SORTIE_AGENT_MAX_TURNS": "9"})
    )

    assert [settings.agent.max_turns for settings in whole.every()] == [9, 9]


PLACE = Place(source="W", line=2, column=1)


def tree(value: object) -> Node:
    """Return a value as a tree, all of it in one place."""
    key = Node(value="key", origin=PLACE)
    match value:
        case list():
            return Node(value=tuple(map(tree, value)), origin=PLACE, key=key)
        case dict():
            return Node(value={k: tree(v) for k, v in value.items()}, origin=PLACE, key=key)
        case None | bool() | int() | float() | str():
            return Node(value=value, origin=PLACE, key=key)
    raise AssertionError(value)


def merged(under: object, over: object) -> object:
    """Lay one value over another, by hand."""
    if not isinstance(under, dict) or not isinstance(over, dict):
        return over
    every = [*under, *(key for key in over if key not in under)]
    return {
        key: merged(under.get(key, {}), over[key]) if key in over else under[key]
        for key in every
        if key not in over or over[key] is not None
    }


def _maybe(**values: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries({}, optional={k: v | st.none() for k, v in values.items()})


counts = st.integers(1, 3)
words = st.lists(st.sampled_from(["a", "b"]), max_size=2)
states = st.lists(st.sampled_from(["Todo", "Doing"]), min_size=1, max_size=2, unique=True)
BLOCKS: dict[str, st.SearchStrategy[Any]] = {
    "agent": _maybe(max_turns=counts | st.just("x"), stop_grace_ms=counts, command=words),
    "verify": _maybe(commands=words, rounds=counts),
    "hooks": _maybe(before_run=st.just("x"), pass_env=words),
    "robot": _maybe(model=st.just("m"), level=counts, trust_all=st.booleans(), trust=words),
    "self_review": _maybe(rounds=counts),
    "repository": _maybe(base=st.just("main"), lfs=st.booleans()),
}
TRACKER = {
    "in_progress_state": st.sampled_from(["Todo", "Doing"]),
    "handoff_state": st.sampled_from(["Review", "Todo"]),
    "comments": _maybe(on_failure=st.booleans()),
}


@given(
    _maybe(**BLOCKS, tracker=_maybe(**TRACKER)),
    _maybe(**BLOCKS, tracker=_maybe(**TRACKER, active_states=states)),
)
def test_a_rule_is_what_the_file_would_say_with_it(
    top: dict[str, Any], over: dict[str, Any]
) -> None:
    """Decoding a rule is decoding a file into which somebody has written it by hand."""
    base = {
        "tracker": {"kind": "file", "active_states": ["Todo"], "handoff_state": "Review"},
        "file": {"path": "issues"},
        "robot": {"trust_all": True},
    }
    if over.get("tracker", {}) is None:
        del over["tracker"]  # a rule cannot do without a tracker
    under = merged(base, {key: value for key, value in top.items() if value is not None})

    def settings(document: object) -> Settings | None:
        return decode(tree(document), schemas=SCHEMAS, context=around()).settings

    assert isinstance(under, dict)
    alone, by_hand = settings(under), settings(merged(under, over))
    with_rule = settings({**under, "rules": [{"name": "r", **over}]})

    assert (with_rule is None) == (alone is None or by_hand is None)
    if with_rule is not None and by_hand is not None:
        (rule,) = with_rule.rules
        own = {"rule": "", "prompt": "", "stage_result": ""}
        assert rule.settings.model_copy(update=own) == by_hand
        assert with_rule.model_copy(update={"rules": ()}) == alone
