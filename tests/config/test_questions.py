"""The ``questions`` block: absent it is off, and what needs it is said."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from sortie.config.decode import Decoded, decode
from sortie.config.questions import QuestionsSettings
from sortie.config.schemas import AgentSchema
from tests.config.sample import GOOD, SCHEMAS, Robot, around, tree

WITH = replace(
    SCHEMAS,
    agents={
        "kiro": AgentSchema(
            block_name="robot",
            model=Robot,
            leaves_to_people=lambda robot: "trust_all" if robot.trust_all else None,
        )
    },
)


def decoded(block: str) -> Decoded:
    """Return what a front matter with this block decodes to."""
    return decode(tree(f"{GOOD}{block}"), schemas=WITH, context=around())


def test_what_is_left_to_people_needs_the_block() -> None:
    """Without it that is denied, of which validation warns at its place."""
    without, given = decoded(""), decoded("questions: {}\n")

    (problem,) = (p for p in without.problems if "block questions" in p.message)
    assert (problem.severity, problem.key) == ("warning", "robot.trust_all")
    assert given.problems == tuple(p for p in without.problems if p is not problem)
    assert given.settings is not None
    assert given.settings.questions == QuestionsSettings()


@pytest.mark.parametrize("block", ["", "questions:\n"])
def test_without_the_block_nobody_is_asked(block: str) -> None:
    """A block without a value says nothing."""
    found = decoded(block).settings

    assert found is not None
    assert found.questions is None


@pytest.mark.parametrize(
    "wrong", ["{timeout_ms: 999}", "{timeout_ms: 31536000001}", "{on_timeout: drop}", "{ask: 1}"]
)
def test_wrong_values(wrong: str) -> None:
    """Each is an error."""
    found = decoded(f"questions: {wrong}\n")

    assert found.settings is None
