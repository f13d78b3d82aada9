"""Liquid becomes Jinja."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sortie.workflow.compiler import check_prompt
from sortie.workflow.front_matter import split_workflow
from sortie.workflow.importing import Program, import_workflow
from sortie.workflow.importing.liquid import from_liquid
from sortie.workflow.prompts import Prompt
from sortie.workflow.renderer import render
from tests.workflow.go_texts import CONTEXT

FORMS = {
    "{{ issue.title }}": "A <b>title",
    "{{- issue.state | upcase -}}": "TO DO",
    "{{ issue.labels | join: ', ' }}": "bug, UI",
    "{{ issue.labels | join }}": "bug UI",
    "{{ issue.labels.size }}{{ issue.labels.first }}": "2bug",
    "{{ issue.url }}": "",
    "{{ issue.url | default: 'none: at | all' }}": "none: at | all",
    '{{ "a\\b" | append: \'"\' }}': 'a\\b"',
    "{{ attempt | plus: 1 | times: 2 }}": "4",
    "{{ 'a-b' | split: '-' | last }}": "b",
    "{% assign x = issue.state | downcase %}{{ x }}": "to do",
    "{% capture x %}[{{ attempt }}]{% endcapture %}{{ x }}": "[1]",
    "{% unless attempt %}a{% else %}b{% endunless %}": "b",
    "{% if issue.state == 'Done' %}a{% elsif attempt > 0 and issue.title %}b{% endif %}": "b",
    "{% if issue.labels contains 'bug' %}a{% endif %}": "a",
    "{% if issue.description == blank or attempt <> 1 %}a{% else %}b{% endif %}": "b",
    "{% case issue.state %}{% when 'Todo', 'To Do' %}a{% else %}b{% endcase %}": "a",
    "{% for l in issue.labels %}{{ forloop.index }}{{ l }}{% unless forloop.last %},"
    "{% endunless %}{% endfor %}": "1bug,2UI",
    "{% comment %} {{ a #} {% endcomment %}b": "b",
    "{% raw %}{{ a }}{% endraw %}": "{{ a }}",
    "${#a}": "${#a}",
}


@pytest.mark.parametrize("liquid", FORMS)
async def test_a_form_of_liquid_renders(liquid: str) -> None:
    """As it would there."""
    jinja, lost = from_liquid(liquid)

    assert lost == []
    assert await render(Prompt(source=f"[{jinja}]"), CONTEXT) == f"[{FORMS[liquid]}]"


@pytest.mark.parametrize(
    "liquid",
    [
        "{% include 'a' %}",
        "{{ issue.created_at | date: '%Y' }}",
        "{% for l in issue.labels limit: 2 %}{{ l }}{% endfor %}",
        "{% for l in issue.labels %}{% break %}{% endfor %}",
        "{% for l in issue.labels %}{% assign x = l %}{% endfor %}",
        "{% if a and b or c %}x{% endif %}",
        "{% endif %}",
        "{{ 'a }}",
        "{% if attempt %}a",
    ],
)
def test_what_has_no_counterpart_becomes_a_comment(liquid: str) -> None:
    """It is told, and the rest stays valid."""
    jinja, lost = from_liquid(f"{{% assign l = 1 %}}{liquid}")

    assert len(lost) == 1
    assert check_prompt(Prompt(source=jinja)) == ()


PIECES = [
    *("{%", "%}", "{{", "}}", " if ", " endif ", " else ", " for l in attempt ", " endfor "),
    *(" case attempt ", " when 1 ", " elsif ", " endcase ", " unless ", " endunless ", "attempt"),
    *(
        " | ",
        "size",
        ": ",
        "'",
        '"',
        " assign x = ",
        " capture x ",
        " endcapture ",
        "-",
        "#",
        "raw",
    ),
]


@given(st.lists(st.sampled_from(PIECES), max_size=30).map("".join), st.sampled_from(Program))
def test_whatever_a_prompt_is_it_is_a_template_or_told(prompt: str, program: Program) -> None:
    """Of each program."""
    made = import_workflow(f"---\ntracker: {{kind: file}}\n---\na {prompt}\n", "old.md", program)

    new = split_workflow(made.text, "new.md").prompts[0].text
    errors = [each for each in check_prompt(Prompt(source=new)) if each.severity == "error"]
    assert not errors or any(told.key == "prompt" for told in made.told)
