"""Named prompts: sections of the file and files beside it, included, checked, and placed."""

from __future__ import annotations

from pathlib import Path

import pytest
import trio

from sortie.model import TemplateError, WorkflowError
from sortie.workflow.loader import Workflow, load
from sortie.workflow.prompts import Prompt
from sortie.workflow.renderer import render
from tests.config.sample import SCHEMAS
from tests.workflow.sample import ENV, FRONT_MATTER, context, loaded, problems, write

LINES = FRONT_MATTER.count("\n")
RULE = FRONT_MATTER.replace("robot:", "rules:\n  - prompt: {}\nrobot:")


def workflow(folder: Path, prompt: str, *, rule: str | None = None, **files: str) -> Workflow:
    """Load a workflow with these prompts, and a rule that names one."""
    return loaded(file(folder, prompt, rule=rule, **files))


def file(folder: Path, prompt: str, *, rule: str | None = None, **files: str) -> Path:
    """Write a workflow, and files of the directory ``parts``."""
    (folder / "parts").mkdir(exist_ok=True)
    for name, text in files.items():
        write(folder / "parts" / f"{name}.md", text)
    head = FRONT_MATTER if rule is None else RULE.format(rule)
    return write(folder / "W.md", head + prompt)


async def rendered(prompt: Prompt) -> str:
    with trio.fail_after(60):
        return await render(prompt, context())


async def test_sections_are_prompts_of_their_own(tmp_path: Path) -> None:
    """Each ends where the next begins; the first is that of the top level."""
    found = workflow(
        tmp_path,
        "Top {{ issue.title }}\n\n--- prompt: one  \n\nOne\n---\nmore\n--- prompt:two\nTwo\n",
        rule="one",
    )
    (rule,) = found.settings.rules

    assert found.prompt.source == "Top {{ issue.title }}"
    assert {name: prompt.source for name, prompt in found.prompts.items()} == {
        "one": "One\n---\nmore",
        "two": "Two",
    }
    assert found.prompts["one"].line == LINES + 2 + 5
    assert await rendered(found.prompt_of(rule.settings)) == "One\n---\nmore"
    assert await rendered(found.prompt_of(found.settings)) == "Top Mend it"


def test_only_a_line_at_the_margin_begins_a_section(tmp_path: Path) -> None:
    """Indented, or with other words, it is text of the prompt."""
    text = "Top\n  --- prompt: one\n--- prompts: two\n--- prompt: a b"

    assert workflow(tmp_path, text).prompts == {}


async def test_a_rule_may_name_a_file(tmp_path: Path) -> None:
    """It stands below the directory of the workflow file, and is watched."""
    found = workflow(tmp_path, "Top", rule="parts/one.md", one="\n\nOne {{ issue.identifier }}\n")
    (rule,) = found.settings.rules

    assert found.files == (tmp_path / "parts" / "one.md",)
    assert await rendered(found.prompt_of(rule.settings)) == "One DEMO-1"
    assert found.prompts["parts/one.md"].line == 3


async def test_prompts_include_sections_and_files(tmp_path: Path) -> None:
    """Files include further ones; all have the same variables."""
    found = workflow(
        tmp_path,
        'Top {% include "one" %}, {% include "parts/a.md" %}\n--- prompt: one\n{{ issue.title }}',
        a='a {% include "parts/b.md" %}',
        b="b {{ issue.state }}",
    )

    assert await rendered(found.prompt) == "Top Mend it, a b Todo"
    assert {path.name for path in found.files} == {"a.md", "b.md"}


async def test_an_endless_include_fails_the_run_alone(tmp_path: Path) -> None:
    """The cycle may end by a condition, so it is no error of the file."""
    text = (
        'Top {% include "one" %}\n--- prompt: one\n1{% include "two" %}'
        '\n--- prompt: two\n2{% if attempt %}{% include "one" %}{% endif %}'
    )
    found = workflow(tmp_path, text)
    endless = workflow(tmp_path, text.replace("{% if attempt %}", "").replace("{% endif %}", ""))

    assert await rendered(found.prompt) == "Top 12"
    with pytest.raises(TemplateError):
        await rendered(endless.prompt)


WRONG = {
    "unknown, one like it": (
        "dosc",
        "T\n--- prompt: docs\nx",
        ['W.md:9:13: rules[0].prompt: there is no prompt "dosc"; did you mean "docs"?'],
    ),
    "unknown, no other": (
        "docs",
        "T",
        [
            'W.md:9:13: rules[0].prompt: there is no prompt "docs"; begin it with a line'
            " --- prompt: docs"
        ],
    ),
    "no such file": (
        "parts/none.md",
        "T",
        ["W.md:9:13: rules[0].prompt: parts/none.md: "],
    ),
    "a file elsewhere": (
        "../x.md",
        "T",
        [
            'W.md:9:13: rules[0].prompt: "../x.md" is no path below the directory of the workflow'
            " file"
        ],
    ),
    "twice": (
        None,
        "T\n--- prompt: a\nx\n--- prompt: a\ny",
        [f"W.md:{LINES + 5}:1: prompt a: there are two prompts of this name"],
    ),
    "no name": (
        None,
        "T\n--- prompt:\nx",
        [f"W.md:{LINES + 3}:1: prompt: the name of a prompt needs letters, digits, - and _"],
    ),
    "empty": (None, "T\n--- prompt: a\n\n", [f"W.md:{LINES + 2}:1: prompt a: is empty"]),
    "a mistake in a section": (
        None,
        "T\n--- prompt: a\nx {{ isue.title }}",
        [f'W.md:{LINES + 3}:6: prompt a: there is no "isue"; did you mean "issue"?'],
    ),
    "a mistake in an included file": (
        None,
        'T {% include "parts/bad.md" %}',
        ['parts/bad.md:2:4: prompt parts/bad.md: there is no "isue"; did you mean "issue"?'],
    ),
    "an unknown include": (
        None,
        'T\n{% include "none" %}',
        [f'W.md:{LINES + 2}:1: prompt: "none" is neither a prompt of this file nor a file'],
    ),
    "a computed include": (
        None,
        "T\n{% include issue.title %}",
        [f"W.md:{LINES + 2}:1: prompt: a prompt can only include another one, by its name"],
    ),
}


@pytest.mark.parametrize(("rule", "prompt", "wrong"), WRONG.values(), ids=WRONG)
def test_problems_have_their_places(
    rule: str | None, prompt: str, wrong: list[str], tmp_path: Path
) -> None:
    """Each is told once, with its own file and line."""
    found = problems(file(tmp_path, prompt, rule=rule, bad="x\n{{ isue.title }}"))

    assert len(found) == len(wrong), found
    for text, begin in zip(found, wrong, strict=True):
        assert text.startswith(begin), text


def test_a_file_that_is_missing_is_watched_too(tmp_path: Path) -> None:
    """So that its coming mends the workflow."""
    path = file(tmp_path, 'T {% include "parts/none.md" %}')

    with pytest.raises(WorkflowError) as raised:
        load(path, schemas=SCHEMAS, env=ENV)

    assert raised.value.files == (tmp_path / "parts" / "none.md",)


async def test_an_error_while_rendering_names_the_included_file(tmp_path: Path) -> None:
    """The line is that of the part, not of the prompt that includes it."""
    found = workflow(tmp_path, 'T\n{% include "parts/a.md" %}', a="x\n{{ 1 // attempt }}")

    with pytest.raises(TemplateError) as raised:
        await rendered(found.prompt)

    assert "parts/a.md" in str(raised.value)
    assert "2" in str(raised.value).partition("a.md")[2]
