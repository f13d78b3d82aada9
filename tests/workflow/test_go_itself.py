"""What a template of Go becomes says the same as it says in Go itself."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from sortie.workflow.compiler import check_prompt
from sortie.workflow.go_templates import from_go
from sortie.workflow.prompts import Prompt
from sortie.workflow.renderer import render
from tests.workflow.go_texts import CONTEXT, DATA, TemplateMaker

PROGRAM = Path(__file__).parent / "programs" / "execute_templates.go"
GO = shutil.which("go") or shutil.which("/usr/local/go/bin/go")
SEEDS = range(400)


@pytest.mark.full
@pytest.mark.skipif(GO is None, reason="no go")
async def test_random_templates_say_what_they_say_in_go(tmp_path: Path) -> None:
    """Wherever Go renders one, and all of it has a counterpart."""
    assert GO is not None
    templates = ["x" + TemplateMaker(seed).template(2) + "x" for seed in SEEDS]
    made = subprocess.run(
        [GO, "run", str(PROGRAM)],
        input=json.dumps({"data": DATA, "templates": templates}),
        capture_output=True,
        text=True,
        check=True,
        timeout=300,
        env={"PATH": "/usr/bin:/bin", "HOME": str(tmp_path), "GOFLAGS": "-mod=mod"},
    )
    answers = json.loads(made.stdout)
    compared = 0
    for template, answer in zip(templates, answers, strict=True):
        jinja, faults = from_go(template)
        if "error" in answer or faults:
            continue
        assert check_prompt(Prompt(source=jinja)) == (), template
        assert await render(Prompt(source=jinja), CONTEXT) == answer["result"], (template, jinja)
        compared += 1
    assert compared > 0.9 * len(templates)
