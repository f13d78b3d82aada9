"""Go's template syntax is recognized and translated."""

from __future__ import annotations

import pytest

from sortie.workflow.go_templates import go_actions

GO = {
    "{{ .issue.title }}": "{{ issue.title }}",
    "{{- .Issue -}}": "{{ Issue }}",
    "{{.issue.title | upper}}": "{{ issue.title | upper }}",
    "{{ if .attempt }}": "{% if attempt %}",
    "{{ if and .a .b.c }}": "{% if and a b.c %}",
    "{{ with .issue }}": "{% if issue %}",
    "{{ else if .x }}": "{% elif x %}",
    "{{ else }}": "{% else %}",
    "{{ end }}": "{% endif %} or {% endfor %}",
    "{{ range .issue.labels }}": "{% for item in issue.labels %}",
    "{{ range $i, $label := .issue.labels }}": "{% for label in issue.labels %}",
    "{{ $x }}": "{{ x }}",
    "{{\n  .issue\n}}": "{{ issue }}",
}


@pytest.mark.parametrize("go", GO)
def test_go_is_shown_as_jinja(go: str) -> None:
    """Each action is found where it stands, with its like in Jinja."""
    found = [(action.index, action.written, action.jinja) for action in go_actions(f"a {go} b")]

    assert found == [(2, " ".join(go.split()), GO[go])]


@pytest.mark.parametrize(
    "jinja",
    [
        "{{ issue.title }}",
        "{{ (issue).title }}",
        "{{ issue.labels[0].x }}",
        "{{ range(3) }}",
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


def test_going_on_after_what_is_ignored() -> None:
    """Comments and raw parts hide what is in them, not what follows."""
    template = "{# {{ .a }} #}{% raw %}{{ .b }}{% endraw %}{{ .c }}"

    assert [action.jinja for action in go_actions(template)] == ["{{ c }}"]
