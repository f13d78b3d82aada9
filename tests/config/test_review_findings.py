"""The ``self_review`` block: absent it is off, and what is wrong with it is said at its place."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from sortie.agents.kiro import ADAPTER
from sortie.config.decode import Decoded, decode
from sortie.config.schemas import AgentSchema
from sortie.config.self_review import SelfReviewSettings
from tests.config.sample import GOOD, SCHEMAS, Board, Files, Robot, around, tree

REPOSITORY = "repository: {url: /srv/thing.git}\n"
WITH = replace(
    SCHEMAS,
    agents={
        "kiro": AgentSchema(block_name="robot", model=Robot, read_only=lambda robot: robot),
        "wild": AgentSchema(block_name="wild", model=Board),
        "strict": AgentSchema(block_name="strict", model=Files, read_only=lambda block: block),
    },
    broken={("agent", "lost"): "its package is gone"},
)


def decoded(block: str, repository: str = REPOSITORY) -> Decoded:
    """Return what a front matter with this block decodes to."""
    return decode(tree(f"{GOOD}{repository}{block}"), schemas=WITH, context=around())


@pytest.mark.parametrize("block", ["", "self_review:\n"])
def test_without_the_block_nothing_is_reviewed(block: str) -> None:
    """A block without a value says nothing."""
    found = decoded(block).settings

    assert found is not None
    assert found.self_review is None


def test_an_empty_block_has_the_defaults() -> None:
    """The times are seconds."""
    found = decoded("self_review: {}\n").settings

    assert found is not None
    assert found.self_review == SelfReviewSettings()
    assert found.self_review.timeout == 900.0


@pytest.mark.parametrize(
    ("block", "where", "message"),
    [
        ("{agent: kirro}", "self_review.agent", 'did you mean "kiro"?'),
        ("{agent: lost}", "self_review.agent", "cannot be used: its package is gone"),
        ("{agent: strict}", "self_review.agent", "whose block strict has required keys"),
        ("{agent: wild, model: x}", "self_review.model", "whose block has no model"),
        ("{rounds: 11}", "self_review.rounds", "11"),
        ("{rounds: -1}", "self_review.rounds", "-1"),
        ("{timeout_ms: 0}", "self_review.timeout_ms", "milliseconds"),
        ("{max_diff_bytes: 10}", "self_review.max_diff_bytes", "10"),
        ("{round: 1}", "self_review.round", 'did you mean "rounds"?'),
        ("[1]", "self_review", "needs a mapping"),
    ],
)
def test_what_is_wrong_is_an_error_at_its_place(block: str, where: str, message: str) -> None:
    """And nothing is decoded then."""
    found = decoded(f"self_review: {block}\n")

    (error,) = [problem for problem in found.problems if problem.severity == "error"]
    assert found.settings is None
    assert error.key == where
    assert message in error.message
    assert error.line == len(f"{GOOD}{REPOSITORY}".splitlines()) + 1


@pytest.mark.parametrize(
    ("block", "repository", "where", "message"),
    [
        ("{}", "", "self_review", "means nothing without repository.url"),
        ("{agent: wild}", REPOSITORY, "self_review.agent", "cannot be kept to reading"),
    ],
)
def test_what_is_doubtful_is_a_warning(
    block: str, repository: str, where: str, message: str
) -> None:
    """The settings can be used."""
    found = decoded(f"self_review: {block}\n", repository)

    assert found.settings is not None
    warnings = [(problem.key, problem.message) for problem in found.problems]
    assert [key for key, text in warnings if message in text] == [where]


def test_a_model_is_checked_as_the_agent_does() -> None:
    """By the rules of its block."""
    schemas = replace(
        WITH,
        agents={
            "kiro": AgentSchema(
                block_name="robot", model=ADAPTER.block, read_only=ADAPTER.read_only
            )
        },
    )
    text = GOOD.replace("trust_all:", "trust_all_tools:") + REPOSITORY
    bad = decode(tree(f"{text}self_review: {{model: -x}}\n"), schemas=schemas, context=around())

    (error,) = bad.problems
    assert error.key == "self_review.model"
    assert "must not begin with '-'" in error.message
