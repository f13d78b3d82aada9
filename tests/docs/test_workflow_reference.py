"""The workflow reference says what the settings are."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from typing import Any

from pydantic import BaseModel, SecretStr
from pydantic.fields import FieldInfo

from sortie.config.fields import fields_of, leaves_of, lookup_of
from sortie.config.json_schema import json_schema
from sortie.config.kubernetes import KubernetesSettings
from sortie.config.overrides import TARGETS
from sortie.config.questions import QuestionsSettings
from sortie.config.reactions import (
    ChecksReaction,
    CommandsReaction,
    ConflictsReaction,
    MergeReaction,
    MoveReaction,
    ReactionsSettings,
    ReviewReaction,
)
from sortie.config.references import Lookup
from sortie.config.reload import needs_restart
from sortie.config.rules import Conditions, WrittenRule
from sortie.config.self_review import SelfReviewSettings
from sortie.config.settings import Rule, Settings, TrackerSettings, WorkspaceSettings
from sortie.config.traces import TracesSettings
from sortie.config.values import Frozen
from sortie.config.webhooks import KINDS_OF_WEBHOOKS, WebhooksSettings
from sortie.config.worker import WorkerSettings
from sortie.trackers.file import FileSettings
from sortie.workflow.variables import PROMPT_VARIABLES, VARIABLE_FIELDS
from tests.docs.pages import built_in_schemas, page, section, table, word, words

TEXT = page("workflow-reference.md")
KEYS = {word(row["key"]): row for row in table(TEXT, "key")}
INTERNAL = {
    "blocks",
    "tracker_block",
    "secret_variables",
    "secret_parts",
    "remote_root",
    "rule",
    "prompt",
    "stage_result",
}
SPECIAL = {
    "agent.command": "by agent",
    "workspace.root": "derived",
    "server.auth_token": "made at start",
    "db_path": "`.sortie.db`",
    "store.weight": "`1`",
    "traces.sample": "`1.0`",
    "worker.kubernetes.clusters": "one with the name `kubernetes`",
}
LOOKUPS = {
    "anywhere in the value": Lookup.ANYWHERE,
    "anywhere in the value; a variable that is not set is an error": Lookup.NEEDED,
    "where the reference is the whole value": Lookup.WHOLE,
    "whole value, then as a number": Lookup.NUMBER,
    "whole value, then as a path": Lookup.PATH,
    "whole value, then as a path of the machine where runs live": Lookup.HOST_PATH,
    "nothing but a reference is accepted": Lookup.ONLY,
    "a reference, or the word `tracker`": Lookup.ONLY_OR_TRACKER,
}


def adapters() -> list[tuple[str, type[BaseModel]]]:
    return [(schema.block_name, schema.model) for schema in built_in_schemas().blocks()]


def leaves() -> Iterator[tuple[str, FieldInfo]]:
    for path, info in leaves_of(Settings):
        if path[0] not in INTERNAL:
            yield ".".join(path), info
    for name, block in adapters():
        for path, info in leaves_of(block, (name,)):
            yield ".".join(path), info


def default_of(key: str, info: FieldInfo) -> str:
    """Return a default as the reference writes it."""
    if key in SPECIAL:
        return SPECIAL[key]
    if info.is_required():
        return "required"
    value: Any = info.default
    match value:
        case None:
            return "none"
        case float():
            value = round(value * 1000)
        case str():
            return f"`{value}`"
        case Frozen():
            value = dict(value)
    return f"`{json.dumps(value)}`"


def settings(tracker_block: str = "file") -> Settings:
    """Return settings whose tracker is the one with this block."""
    blocks: dict[str, BaseModel] = {name: block.model_construct() for name, block in adapters()}
    blocks["file"] = FileSettings(path="/i")
    return Settings(
        tracker=TrackerSettings(kind="file"),
        workspace=WorkspaceSettings(root="/w"),
        self_review=SelfReviewSettings(),
        traces=TracesSettings(),
        questions=QuestionsSettings(),
        worker=WorkerSettings(kubernetes=KubernetesSettings(image="agent:1")),
        reactions=ReactionsSettings(
            checks=ChecksReaction(),
            review=ReviewReaction(),
            conflicts=ConflictsReaction(),
            commands=CommandsReaction(),
            merge=MergeReaction(),
            merged=MoveReaction(state="Done"),
            closed=MoveReaction(state="Held"),
        ),
        webhooks=WebhooksSettings(
            **{kind: {"secret": SecretStr("a secret")} for kind in KINDS_OF_WEBHOOKS}
        ),
        db_path="/d",
        blocks=blocks,
        tracker_block=tracker_block,
    )


def settings_with(key: str) -> Settings:
    """Return settings by which the key counts, where it is one of a tracker's block."""
    block = key.partition(".")[0]
    of_trackers = {schema.block_name for schema in built_in_schemas().trackers.values()}
    return settings(block) if block in of_trackers else settings()


def changed_block(block: BaseModel, path: Sequence[str]) -> BaseModel:
    """Return a block in which one key, and nothing else, has another value."""
    key, *below = path
    names = {info.alias or name: name for name, info in type(block).model_fields.items()}
    value: object = changed_block(getattr(block, names[key]), below) if below else object()
    return block.model_copy(update={names[key]: value})


def changed(key: str) -> Settings:
    """Return settings in which one key, and nothing else, has another value."""
    *above, last = key.split(".")
    old = settings_with(key)
    if key == "rules":
        rule = Rule(name="docs", when=Conditions(), settings=old)
        return old.model_copy(update={key: (rule,)})
    if not above:
        return old.model_copy(update={last: object()})
    section_name = above[0]
    new = changed_block(
        old.blocks.get(section_name) or getattr(old, section_name), key.split(".")[1:]
    )
    if section_name in old.blocks:
        return old.model_copy(update={"blocks": Frozen({**old.blocks, section_name: new})})
    return old.model_copy(update={section_name: new})


def test_every_key_stands_in_the_reference() -> None:
    """The tables hold every key of the settings and of the adapters' blocks, and no other."""
    known = {key for key, _ in leaves()}

    assert KEYS.keys() == known


def test_every_key_stands_in_the_schema_for_editors() -> None:
    """The JSON Schema holds every key of the reference, and no other."""
    schema = json_schema(built_in_schemas())

    def keys(part: dict[str, Any], above: str = "") -> Iterator[str]:
        for key, inner in part["properties"].items():
            refs = [one["$ref"] for one in (inner, *inner.get("anyOf", ())) if "$ref" in one]
            found = schema["$defs"][refs[0].rpartition("/")[2]] if refs else inner
            if "properties" in found:
                yield from keys(found, f"{above}{key}.")
            else:
                yield f"{above}{key}"

    assert {*keys(schema)} == KEYS.keys()


def test_every_key_of_a_rule_is_explained() -> None:
    """The page about rules holds every key and condition of one, and no other."""
    rules = page("rules.md")
    keys = {word(row["key"]) for row in table(rules, "key")}
    conditions = {word(row["condition"]) for row in table(rules, "condition")}

    assert keys == {".".join(path) for path, _ in leaves_of(WrittenRule) if path[0] != "when"} | {
        "when"
    }
    assert conditions == set(fields_of(Conditions))


def test_defaults_are_those_of_the_code() -> None:
    """The column with the defaults agrees with the models."""
    written = {key: row["default"] for key, row in KEYS.items()}

    assert written == {key: default_of(key, info) for key, info in leaves()}


def test_what_needs_a_restart_is_marked() -> None:
    """The column about reloads says ``restart`` for exactly the keys that need one."""
    marked = {key for key, row in KEYS.items() if row["reload"] == "restart"}

    assert marked == {key for key, _ in leaves() if needs_restart(settings_with(key), changed(key))}


def test_references_are_looked_up_where_it_is_said() -> None:
    """The table of lookups names every key in which ``$VAR`` means something."""
    written = {
        key: LOOKUPS[row["lookup"]] for row in table(TEXT, "lookup") for key in words(row["keys"])
    }

    assert written == {key: how for key, info in leaves() if (how := lookup_of(info)) is not None}


def test_sections_with_overrides_are_named() -> None:
    """The sentence about environment variables names the sections that have them."""
    (sentence,) = re.findall(r"^Keys of (.*?) have variables", TEXT, re.MULTILINE)

    assert set(words(sentence)) == {path[0] for path, _ in TARGETS.values()} - {
        "db_path",
        "isolation",
    }
    assert {
        name for name in words(TEXT) if re.fullmatch(r"SORTIE_(AGENT|TRACKER|DB)_\w+", name)
    } <= (TARGETS.keys())


def test_prompt_variables_are_those_that_templates_have() -> None:
    """The table of variables holds every name and field of a template, and no other."""
    written = {word(row["variable"]) for row in table(section(TEXT, "The prompt"), "variable")}
    fields = {f"{name}.{field}" for name, fields in VARIABLE_FIELDS.items() for field in fields}

    assert written == fields | (PROMPT_VARIABLES - VARIABLE_FIELDS.keys())


def test_fields_of_issue_files_are_those_of_the_tracker() -> None:
    """The table of fields and the tracker's own README list the same fields."""
    texts = (page("trackers/file.md"), page("../sortie/trackers/file/README.md"))

    ours, own = ({w for row in table(t, "field") for w in words(row["field"])} for t in texts)

    assert ours == own
