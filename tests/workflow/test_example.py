"""WORKFLOW.example.md is complete and right."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from pydantic import BaseModel

from sortie.config.fields import fields_of, leaves_of, sections_of
from sortie.config.settings import Settings
from sortie.config.webhooks import KINDS_OF_WEBHOOKS
from sortie.daemon.workflow_file import schemas
from sortie.workflow.loader import Workflow, load
from tests.docs.pages import built_in_schemas

EXAMPLE = Path(__file__).parents[2] / "WORKFLOW.example.md"


SERVER = {"SORTIE_STORE_URL": "postgresql://sortie@db.example/sortie"}


def loaded(path: Path, **more: str) -> Workflow:
    """Load a workflow with the adapters there are."""
    return load(
        path,
        schemas=schemas(),
        env={
            "HOME": "/home/me",
            "SORTIE_TOKEN": "token",
            "FORGE_TOKEN": "token-of-a-forge",
            **{f"{kind.upper()}_WEBHOOK_SECRET": kind * 3 for kind in KINDS_OF_WEBHOOKS},
            **more,
        },
    )


def models() -> Iterator[tuple[str, type[BaseModel]]]:
    """Yield every block that a WORKFLOW.md can have."""
    yield from sections_of(Settings).items()
    for schema in built_in_schemas().blocks():
        yield schema.block_name, schema.model


def test_the_example_is_right() -> None:
    """It can be run as it is, and there is nothing to warn about."""
    assert loaded(EXAMPLE).warnings == ()


KEYS = [(section, path) for section, model in models() for path, _ in leaves_of(model)]


@pytest.mark.parametrize(("section", "path"), KEYS, ids=[".".join([s, *p]) for s, p in KEYS])
def test_the_example_mentions_every_key(section: str, path: tuple[str, ...]) -> None:
    """Every key of every block stands below its block, if only as a comment."""
    text = EXAMPLE.read_text()
    block = re.search(rf"^(?:# )?{section}:.*\n((?:[ #].*\n|\n)*)", text, re.MULTILINE)

    assert block is not None
    assert re.search(rf"^(?:#?\s+)(?:# +)?{path[-1]}:", block[1], re.MULTILINE)


def test_its_values_are_the_defaults() -> None:
    """What is no choice of the example's author is what holds without it."""
    chosen = {
        "tracker": {"active_states", "terminal_states", "in_progress_state", "handoff_state"},
        "agent": {"command"},
    }
    settings = loaded(EXAMPLE).settings

    for section, model in sections_of(Settings).items():
        if getattr(settings, section) is None:
            continue
        for key, info in fields_of(model).items():
            name = next(n for n, i in model.model_fields.items() if i is info)
            if key in chosen.get(section, set()) or info.is_required():
                continue
            assert getattr(getattr(settings, section), name) == info.get_default(
                call_default_factory=False
            ), f"{section}.{key}"
    assert settings.db_path == str(EXAMPLE.parent / ".sortie.db")


def test_what_is_a_comment_would_be_right_too(tmp_path: Path) -> None:
    """With every key uncommented, and the lines below it, there is still no error."""
    commented = re.compile(r"^(\s+)# ([a-z_]+:.*|  +\S.*)$", flags=re.MULTILINE)
    text = commented.sub(r"\1\2", EXAMPLE.read_text())
    review = re.search(r"^# self_review:\n(?:#.*\n)+", text, flags=re.MULTILINE)
    assert review is not None
    text = text.replace(review[0], re.sub(r"^# ", "", review[0], flags=re.MULTILINE))
    questions = re.search(r"^# questions:\n(?:#.*\n)+", text, flags=re.MULTILINE)
    assert questions is not None
    text = text.replace(questions[0], re.sub(r"^# ", "", questions[0], flags=re.MULTILINE))
    rules = re.search(r"^# rules:\n(?:#.*\n)+", text, flags=re.MULTILINE)
    assert rules is not None
    text = text.replace(rules[0], re.sub(r"^# ", "", rules[0], flags=re.MULTILINE))
    path = tmp_path / "WORKFLOW.md"
    # These are for other trackers, and instead of hosts.
    text = re.sub(r"^  label_states:.*\n", "", text, flags=re.MULTILINE)
    pods = re.search(r"^  kubernetes:.*\n(?:    .*\n)+  kubeconfig:.*\n", text, flags=re.MULTILINE)
    assert pods is not None
    path.write_text(re.sub(r"^  ssh_.*\n", "", text, flags=re.MULTILINE))
    in_pods = loaded(path, **SERVER).settings
    path.write_text(text.replace(pods[0], ""))

    settings = loaded(path, **SERVER).settings

    assert in_pods.worker.kubernetes is not None
    assert in_pods.worker.kubernetes.max_pods == 10
    assert settings.worker.ssh_hosts == ("build1", "me@build2:2222")
    assert settings.hooks.before_run == "git fetch"
    assert settings.self_review is not None
    assert settings.questions is not None
    (rule,) = settings.rules
    assert (rule.settings.agent.max_turns, rule.settings.tracker.handoff_state) == (
        2,
        "Docs review",
    )
    assert tuple(settings.webhooks.secrets) == KINDS_OF_WEBHOOKS
    assert settings.reactions.merge is not None
    assert settings.reactions.merge.require.checks == ()
    assert settings.hooks.after_create is not None
    assert settings.hooks.after_create.endswith("\n}\n")
