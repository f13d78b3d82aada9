"""Go's template syntax is recognized and translated, and what it becomes is Jinja."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from sortie.model import Blocker, Comment, Issue, IssueId
from sortie.workflow.compiler import check_prompt
from sortie.workflow.go_templates import from_go, go_actions
from sortie.workflow.prompts import Prompt, PromptContext
from sortie.workflow.renderer import render

CONTEXT = PromptContext(
    issue=Issue(
        id=IssueId("7"),
        identifier="ABC-7",
        title="A title",
        description="Do it",
        state="To Do",
        priority=2,
        url="http://t/7",
        labels=("bug", "ui"),
        parent="ABC-1",
        comments=(
            Comment(author="ann", body="first", created_at=datetime(2026, 11, 1, tzinfo=UTC)),
            Comment(author="bob", body="second", created_at=datetime(2026, 11, 2, tzinfo=UTC)),
        ),
        blocked_by=(Blocker(identifier="ABC-2", id=IssueId("2"), state="Done"),),
    ),
    attempt=1,
    turn_number=1,
    max_turns=5,
    is_continuation=False,
    workspace_path="/w",
    host="local",
)

FORMS: dict[str, tuple[str, str]] = {
    # Fields and variables
    "{{ .issue.title }}": ("{{ issue.title }}", "A title"),
    "{{ $.issue.title }}": ("{{ issue.title }}", "A title"),
    "{{\n  .issue.state\n}}": ("{{ issue.state }}", "To Do"),
    "{{ (.issue).title }}": ("{{ issue.title }}", "A title"),
    "{{ .issue.parent.identifier }}": ("{{ issue.parent }}", "ABC-1"),
    "{{ $x := .issue.state }}{{ $x }}": ("{% set x = issue.state %}{{ x }}", "To Do"),
    # Whitespace marks
    "a {{- .issue.state -}} b": ("a {{- issue.state -}} b", "aTo Dob"),
    "a {{- if .attempt -}} b {{- end -}} c": ("a {%- if attempt -%} b {%- endif -%} c", "abc"),
    # Conditions, with functions in front
    "{{ if .attempt }}a{{ else }}b{{ end }}": ("{% if attempt %}a{% else %}b{% endif %}", "a"),
    "{{ if and .attempt (not .run.is_continuation) }}a{{ end }}": (
        "{% if attempt and (not run.is_continuation) %}a{% endif %}",
        "a",
    ),
    "{{ if or (and .attempt .issue.assignee) .issue.url }}a{{ end }}": (
        "{% if (attempt and issue.assignee) or issue.url %}a{% endif %}",
        "a",
    ),
    '{{ if eq .issue.state "To Do" }}a{{ end }}': (
        '{% if issue.state == "To Do" %}a{% endif %}',
        "a",
    ),
    '{{ if eq .issue.state "Done" "To Do" }}a{{ end }}': (
        '{% if issue.state in ["Done", "To Do"] %}a{% endif %}',
        "a",
    ),
    "{{if eq .attempt nil}}a{{end}}": ("{% if attempt == none %}a{% endif %}", ""),
    "{{ if gt .run.turn_number 1 }}a{{ else if lt .attempt 3 }}b{{ end }}": (
        "{% if run.turn_number > 1 %}a{% elif attempt < 3 %}b{% endif %}",
        "b",
    ),
    "{{ if gt (len .issue.labels) 1 }}a{{ end }}": (
        "{% if issue.labels | length > 1 %}a{% endif %}",
        "a",
    ),
    "{{ if and (eq .attempt 1) (ne .issue.state `x`) }}a{{ end }}": (
        '{% if attempt == 1 and issue.state != "x" %}a{% endif %}',
        "a",
    ),
    # Loops, and what the dot is in them
    "{{ range .issue.labels }}- {{ . }}\n{{ end }}": (
        "{% for item in issue.labels %}- {{ item }}\n{% endfor %}",
        "- bug\n- ui\n",
    ),
    "{{ range .issue.comments }}{{ .author }}: {{ .body }}; {{ end }}": (
        "{% for item in issue.comments %}{{ item.author }}: {{ item.body }}; {% endfor %}",
        "ann: first; bob: second; ",
    ),
    "{{ range .issue.blocked_by }}{{ .identifier }}{{ if .state }} ({{ .state }}){{ end }}"
    "{{ end }}": (
        "{% for item in issue.blocked_by %}{{ item.identifier }}{% if item.state %}"
        " ({{ item.state }}){% endif %}{% endfor %}",
        "ABC-2 (Done)",
    ),
    "{{ range $i, $c := .issue.comments }}{{ if $i }}, {{ end }}{{ $c.author }}{{ .body }}"
    "{{ end }}": (
        "{% for c in issue.comments %}{% set i = loop.index0 %}{% if i %}, {% endif %}"
        "{{ c.author }}{{ c.body }}{% endfor %}",
        "annfirst, bobsecond",
    ),
    "{{- range $i, $l := .issue.labels -}} {{ if $i }},{{ end }}{{ $l }} {{- end }}": (
        "{%- for l in issue.labels %}{% set i = loop.index0 -%} {% if i %},{% endif %}{{ l }}"
        " {%- endfor %}",
        "bug,ui",
    ),
    "{{ range $l := .issue.labels }}{{ $l }}{{ else }}none{{ end }}": (
        "{% for l in issue.labels %}{{ l }}{% else %}none{% endfor %}",
        "bugui",
    ),
    "{{ range .issue.comments }}{{ range $.issue.labels }}{{ . }}{{ $.issue.id }}{{ end }}"
    "{{ .author }}{{ end }}": (
        "{% for item in issue.comments %}{% for item2 in issue.labels %}{{ item2 }}{{ issue.id }}"
        "{% endfor %}{{ item.author }}{% endfor %}",
        "bug7ui7annbug7ui7bob",
    ),
    "{{ range $i, $c := .issue.comments }}{{ range $.issue.labels }}{{ $i }}{{ end }}{{ end }}": (
        "{% for c in issue.comments %}{% set i = loop.index0 %}{% for item in issue.labels %}"
        "{{ i }}{% endfor %}{% endfor %}",
        "0011",
    ),
    "{{ with .issue }}{{ .title }}{{ else }}{{ .attempt }}{{ end }}": (
        "{% if issue %}{{ issue.title }}{% else %}{{ attempt }}{% endif %}",
        "A title",
    ),
    # Functions, in front and behind a bar
    '{{ .issue.labels | join ", " }}': ('{{ issue.labels | join(", ") }}', "bug, ui"),
    '{{ join ", " .issue.labels }}': ('{{ issue.labels | join(", ") }}', "bug, ui"),
    "{{ .issue.state | lower }}": ("{{ issue.state | lower }}", "to do"),
    '{{ .issue.labels | join "," | upper }}': (
        '{{ issue.labels | join(",") | upper }}',
        "BUG,UI",
    ),
    "{{ len .issue.labels }}": ("{{ issue.labels | length }}", "2"),
    "{{ toJSON .issue.labels }}": ("{{ issue.labels | tojson }}", '["bug", "ui"]'),
    '{{ printf "%s!" .issue.title }}': ('{{ "%s!" | format(issue.title) }}', "A title!"),
    '{{ printf "%v of %d %q" .attempt .run.max_turns .issue.id }}': (
        '{{ "%s of %d \\"%s\\"" | format(attempt, run.max_turns, issue.id) }}',
        '1 of 5 "7"',
    ),
    "{{ index .issue.labels 0 }}": ("{{ issue.labels[0] }}", "bug"),
    '{{ print .issue.id "-" .attempt }}': ('{{ issue.id ~ "-" ~ attempt }}', "7-1"),
    "{{ println .issue.id .attempt }}": (r'{{ issue.id ~ " " ~ attempt ~ "\n" }}', "7 1\n"),
    '{{ .issue.assignee | default "nobody" }}': (
        '{{ issue.assignee | default("nobody", true) }}',
        "nobody",
    ),
    # Comments
    "{{/* a comment */}}b": ("{# a comment #}b", "b"),
    "a {{- /* }} #} */ -}} b": ("a {#- }} # } -#} b", "ab"),
}


def translated(go: str) -> str:
    """Return a template with each Go action as it is shown in Jinja."""
    made, at = "", 0
    for action in go_actions(go):
        end = at + go[at:].index("}}", action.index - at) + 2
        if "*/" in go[action.index :]:
            end = go.index("}}", go.index("*/", action.index)) + 2
        made += go[at : action.index] + action.jinja
        at = end
    return made + go[at:]


@pytest.mark.parametrize("go", FORMS)
async def test_a_form_of_go_is_shown_as_jinja_that_renders(go: str) -> None:
    """Each form that examples of other programs use; what is shown compiles, and means the same."""
    jinja, rendered = FORMS[go]

    assert translated(go) == jinja
    assert [problem.message for problem in check_prompt(Prompt(source=jinja))] == []
    assert await render(Prompt(source=f"[{jinja}]"), CONTEXT) == f"[{rendered}]"
    assert list(go_actions(jinja)) == []


def test_an_action_is_found_where_it_stands() -> None:
    """With its text on one line."""
    found = [(action.index, action.written) for action in go_actions("a {{ .a\n }} {{ .b }}")]

    assert found == [(2, "{{ .a }}"), (12, "{{ .b }}")]


@pytest.mark.parametrize(
    ("go", "jinja"),
    [
        ("{{ end }}", ["{% endif %} or {% endfor %}"]),
        ("{{ else }}", ["{% else %}"]),
        ("{{ .issue.title | trim }}", ["{{ issue.title | trim }}"]),
        ("{{ .Issue }}", ["{{ Issue }}"]),
        ("{{ if [ }}{{ end }}", ["{% endif %}"]),
        ('{{ hasPrefix "a" .issue.title }}', ['{{ issue.title | hasPrefix("a") }}']),
    ],
)
def test_what_is_half_known_is_shown_too(go: str, jinja: list[str]) -> None:
    """An end without a begin, and functions that only one program has."""
    assert [action.jinja for action in go_actions(go)] == jinja


@pytest.mark.parametrize(
    "jinja",
    [
        "{{ issue.title }}",
        "{{ (issue).title }}",
        "{{ issue.labels[0].x }}",
        "{{ range(3) }}",
        "{{ not true }}",
        "{{ not issue.title }}",
        "{{ 'a' | join(', ') }}",
        '{{ "a" | join(", ") }}',
        '{{ "a" | upper }}',
        '{{ issue.labels | join(", ") }}',
        "{{ issue .title }}",
        "{{ 1.5 }}",
        "{{ true and false }}",
        "{{ endpoint }}{{ ending }}{{ elsewhere }}",
        "{% if issue.title %}{% else %}{% endif %}",
        "{# {{ .a }} #}",
        "{% raw %}{{ .a }}{% endraw %}",
        "{%- raw -%}{{ .a }}{%- endraw -%}",
        "{{ .a ",
        "{# {{ .a }}",
        "{% raw %}{{ .a }}",
        "{{ }}",
    ],
)
def test_jinja_is_left_alone(jinja: str) -> None:
    """What Jinja reads otherwise, ignores or rejects by itself is not taken for Go."""
    assert list(go_actions(jinja)) == []


PIECES = [
    "{{",
    "}}",
    " ",
    "-",
    ".a",
    "$i",
    "(",
    ")",
    "|",
    '"',
    "if",
    "range",
    "end",
    ":=",
    ",",
    "len",
]


@given(st.lists(st.sampled_from(PIECES), max_size=30).map("".join))
def test_no_template_breaks_it(template: str) -> None:
    """Whatever is written, actions are found or not."""
    for action in go_actions(template):
        assert action.jinja


CONVERTED = {
    # What Jinja alone would take for its own
    "{% a %} {# b #} ${#c}": '{{ "{" }}% a %} {{ "{" }}# b #} ${{ "{" }}#c}',
    '{{ "}}" }}': '{{ "}}" }}',
    # Names that mean something else in Jinja, or are bound twice
    "{{ $loop := .attempt }}{{ $loop }}": "{% set loop2 = attempt %}{{ loop2 }}",
    "{{ $x := 1 }}{{ if .attempt }}{{ $x := 2 }}{{ $x }}{{ end }}{{ $x }}": (
        "{% set x = 1 %}{% if attempt %}{% set x2 = 2 %}{{ x2 }}{% endif %}{{ x }}"
    ),
    # A variable that a loop assigns
    "{{ $s := 0 }}{{ range .issue.labels }}{{ $s = . }}{{ end }}{{ $s }}": (
        "{% set s = namespace(value=0) %}{% for item in issue.labels %}{% set s.value = item %}"
        "{% endfor %}{{ s.value }}"
    ),
    # What is empty in Go is none here, and shows as nothing all the same
    "{{ .issue.url }}": '{{ issue.url or "" }}',
    "{{ if .issue.url }}{{ .issue.url }}{{ end }}": "{% if issue.url %}{{ issue.url }}{% endif %}",
    '{{ if eq .issue.assignee "" }}a{{ end }}': (
        '{% if (issue.assignee or "") == "" %}a{% endif %}'
    ),
    "{{ .run.is_continuation }}": "{{ run.is_continuation | lower }}",
    # Declared where it is asked for
    "{{ with $u := .issue.url }}{{ $u }}{{ end }}": (
        '{% set u = issue.url or "" %}{% if u %}{{ u }}{% endif %}'
    ),
    "{{ range $n := 3 }}{{ $n }}{{ end }}": "{% for n in range(3) %}{{ n }}{% endfor %}",
}


@pytest.mark.parametrize("go", CONVERTED)
def test_a_whole_template_is_converted(go: str) -> None:
    """All that stands between braces is Go's, and what stands elsewhere is text."""
    assert from_go(go) == (CONVERTED[go], [])


LOST = {
    "{{ .stage.current }}": ("{# not imported: .stage.current #}", "no counterpart"),
    "{{ .issue.parent.id }}": ("{# not imported: .issue.parent.id #}", "no counterpart"),
    "{{ range .issue.comments }}{{ .id }}{{ end }}": (
        "{% for item in issue.comments %}{# not imported: .id #}{% endfor %}",
        "no counterpart",
    ),
    "{{ if .stage }}{{ .stage.previous }}{{ else }}b{{ end }}": (
        "{# not imported: if .stage #}{% if false %}{# not imported: .stage.previous #}"
        "{% else %}b{% endif %}",
        "no counterpart",
    ),
    "{{ range .issue.labels }}{{ break }}{{ end }}": (
        "{% for item in issue.labels %}{# not imported: break #}{% endfor %}",
        "break has no counterpart",
    ),
    '{{ define "a" }}b{{ end }}': (
        '{# not imported: define "a" #}{% if false %}b{% endif %}',
        "define has no counterpart",
    ),
    "{{ $x }}": ("{# not imported: $x #}", "not declared"),
    "{{ issue.title }}": ("{# not imported: issue.title #}", "not understood"),
    "{{ end }}": ("{# not imported: end #}", "ends nothing"),
    "{{ if .attempt }}a": ("{% if attempt %}a{% endif %}", "lacks an end"),
    "a {{ .attempt": ("a {#  .attempt #}", "does not end"),
    "{{ if .attempt }}a{{ else }}b{{ else }}c{{ end }}": (
        "{% if attempt %}a{% else %}b{# not imported: else #}c{% endif %}",
        "stands in no block",
    ),
    '{{ hasPrefix "a" .issue.title }}': (
        '{# not imported: hasPrefix "a" .issue.title #}',
        "no function hasPrefix",
    ),
}


@pytest.mark.parametrize("go", LOST)
def test_what_has_no_counterpart_becomes_a_comment(go: str) -> None:
    """What it belongs to stays valid, and what is lost is told once."""
    converted, faults = from_go(go)

    assert converted == LOST[go][0]
    assert len(faults) == 1
    assert LOST[go][1] in faults[0].fault
    assert check_prompt(Prompt(source=converted)) == ()


def test_what_has_happened_is_told_where_a_template_speaks_of_it() -> None:
    """Nothing is added to a template that uses ``reaction``, so the converted one says it."""
    converted, faults = from_go("{{ if .ci_failure }}{{ .ci_failure.ref }}{{ end }}")

    assert converted.startswith('{% if "checks" in reaction.kinds and not run.is_continuation %}')
    assert converted.endswith("{{ reaction.text }}{% endif %}")
    assert [fault.written for fault in faults] == ["{{ .ci_failure.ref }}"]


@given(st.lists(st.sampled_from([*PIECES, "else", "with", "x", "$i =", "{%", "#}"])).map("".join))
def test_whatever_is_converted_is_a_template(go: str) -> None:
    """Of our compiler's; what has no counterpart is reported."""
    converted, faults = from_go(f"a {go}")

    assert [problem.message for problem in check_prompt(Prompt(source=converted))] == []
    assert all(fault.fault for fault in faults)


def test_deep_parentheses_break_nothing() -> None:
    """They are not understood, and the template is refused for that."""
    template = "{{ " + "(" * 5000 + ".a" + ")" * 5000 + " }}"

    assert check_prompt(replace(Prompt(source=template)))
