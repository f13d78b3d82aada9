"""What is wrong with a prompt is found before it is rendered."""

from __future__ import annotations

import time

import pytest

from sortie.workflow.compiler import check_prompt
from sortie.workflow.prompts import Prompt


def found(source: str) -> list[str]:
    """Return the problems of a prompt that begins on line 10."""
    return [str(problem) for problem in check_prompt(Prompt(source=source, line=10, path="W"))]


GOOD = [
    "plain text, } and { and % signs",
    "{{ issue.title }}{{ attempt + 1 }}{{ run.turn_number }}{{ workspace.host }}",
    "{% for label in issue.labels %}{{ loop.index }}{{ label }}{% endfor %}",
    "{% set issue = {'x': 1} %}{{ issue.x }}",
    "{% macro m(a) %}{{ a }}{{ varargs }}{% endmacro %}{{ m(1) }}",
    "{% for run in issue.comments %}{{ run.author }}{% endfor %}",
    "{% set ns = namespace(a=1) %}{{ ns.a }}{{ range(2) }}{{ dict(a=1) }}",
    "{{ issue['title'] }}{{ issue.items() }}{{ issue.title is defined }}",
    "{# comment #}{% raw %}{{ anything }}{% endraw %}",
    "{{ issue.labels | map('upper') | join(', ') | truncate(9) }}",
]


@pytest.mark.parametrize("source", GOOD)
def test_good_prompts_have_no_problems(source: str) -> None:
    """Jinja's own ways are accepted, names that a prompt makes itself included."""
    assert found(source) == []


INVALID = "prompt: not a valid template:"
VARIABLES = "known: attempt, issue, reaction, repository, review, run, stage, workspace"
FIELDS = (
    "known: assignee, author, blocked_by, branch_name, comments, created_at, description, id, "
    "identifier, issue_type, labels, parent, priority, state, title, updated_at, url"
)
BAD = {
    "unknown variables": (
        "{{ isue.title }}\n{% if x and issue %}{{ y }}{% endif %}",
        [
            'W:10:4: prompt: there is no "isue"; did you mean "issue"?',
            f'W:11:7: prompt: there is no "x"; {VARIABLES}',
            f'W:11:24: prompt: there is no "y"; {VARIABLES}',
        ],
    ),
    "unknown fields": (
        "{{ issue.titel }}\n\n{{ run['turns'] }}{{ workspace.key }}",
        [
            'W:10:10: prompt: issue has no "titel"; did you mean "title"?',
            'W:12:9: prompt: run has no "turns"; did you mean "max_turns"?',
            'W:12:32: prompt: workspace has no "key"; known: host, path',
        ],
    ),
    "unknown filters and tests": (
        "{{ issue.title | uper }}\n{{ 1 is evn }}{{ issue | attr('x') }}",
        [
            'W:10:18: prompt: there is no filter "uper"; did you mean "upper"?',
            'W:11:9: prompt: there is no test "evn"; did you mean "even"?',
            'W:11:26: prompt: there is no filter "attr"; no known one is like it',
        ],
    ),
    "other templates": (
        "a\n{% include 'x' %}\n{% import 'x' as y %}",
        [
            'W:11:1: prompt: "x" is neither a prompt of this file nor a file beside it',
            "W:12:1: prompt: a prompt can only include another one, by its name in quotes",
        ],
    ),
    "parents": (
        "{% extends 'x' %}",
        ["W:10:1: prompt: a prompt can only include another one, by its name in quotes"],
    ),
    "syntax": (
        "a\nb\n{% if issue %}\n{{ issue",
        [
            "W:13:1: prompt: not a valid template: unexpected end of template, "
            "expected 'end of print statement'."
        ],
    ),
    "twice on a line": (
        "a {{ isue }} {{ isue }} {{ issue.x }} {{ run.x }}",
        [
            'W:10:6: prompt: there is no "isue"; did you mean "issue"?',
            f'W:10:34: prompt: issue has no "x"; {FIELDS}',
            'W:10:34: prompt: run has no "x"; known: answer, is_continuation, max_turns, '
            "turn_number",
        ],
    ),
    "syntax, a word too much": (
        "ab {{ a b }}",
        [f"W:10:1: {INVALID} expected token 'end of print statement', got 'b'"],
    ),
    "syntax, an unknown tag": (
        "a\n {%- foo %}",
        [f"W:11:1: {INVALID} Encountered unknown tag 'foo'."],
    ),
    "syntax, a tag that is not closed": (
        "{% for a in b %}{% if a %}{% endif %} {% if b -%} x",
        [
            f"W:10:1: {INVALID} Unexpected end of template. Jinja was looking for the following "
            "tags: 'elif' or 'else' or 'endif'. The innermost block that needs to be closed is "
            "'if'."
        ],
    ),
    "syntax, no character of Jinja's": (
        "x\n{{ a ? b }}",
        [f"W:11:1: {INVALID} unexpected char '?' at 7"],
    ),
    "syntax, an open comment": ("a {# b", [f"W:10:1: {INVALID} Missing end of comment tag"]),
    "syntax, a wrong bracket": ("{{ (a }}", [f"W:10:1: {INVALID} unexpected '}}', expected ')'"]),
    "go": (
        "a {{ .issue.title }}\n{{ if .x }}{{ end }}\n{{ nope }}",
        [
            "W:10:3: prompt: {{ .issue.title }} is Go's syntax; Jinja's is {{ issue.title }}",
            "W:11:1: prompt: {{ if .x }} is Go's syntax; Jinja's is {% if x %}",
            "W:11:12: prompt: {{ end }} is Go's syntax; Jinja's is {% endif %}",
        ],
    ),
    "too much": ("a\n" + "{{ 1 }}" * 7_000, ["W:11:1: prompt: more than 20,000 template tokens"]),
    "too deep": (
        "{{ " + "(" * 3_000 + "1" + ")" * 3_000 + " }}",
        ["W:10:1: prompt: cannot be compiled: it nests too deeply or holds too large a number"],
    ),
    "too many loops": (
        "{% for a in issue.labels %}" * 30 + "{% endfor %}" * 30,
        ["W:10:1: prompt: cannot be compiled: it nests too deeply or holds too large a number"],
    ),
    "too large a number": (
        "{{ " + "9" * 5_000 + " }}",
        ["W:10:1: prompt: cannot be compiled: it nests too deeply or holds too large a number"],
    ),
}


def _place(problem: str) -> tuple[int, int]:
    _, line, column, _ = problem.split(":", 3)
    return int(line), int(column)


@pytest.mark.parametrize("name", BAD)
def test_bad_prompts(name: str) -> None:
    """Every problem has the line of the file, and none takes long to find."""
    source, expected = BAD[name]
    begin = time.monotonic()

    problems = sorted(found(source), key=_place)

    assert problems == expected
    assert time.monotonic() - begin < 30


def test_go_is_reported_a_hundred_times_at_most() -> None:
    """A file full of it does not become as many lines."""
    assert len(found("{{ .a }}" * 1_000)) == 100


def test_an_empty_prompt_is_warned_about() -> None:
    """There is a built-in prompt, but leaving it out is hardly meant."""
    assert found(" \n") == [
        "W:10:1: warning: prompt: there is no prompt below the front matter; a built-in one is used"
    ]
