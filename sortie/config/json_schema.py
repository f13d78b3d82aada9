"""The front matter as a JSON Schema, for editors; made from the models that decode it."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, Literal

from pydantic import BaseModel
from pydantic.json_schema import GenerateJsonSchema, models_json_schema

from sortie.config.decode import RATES_KEY, SECTIONS
from sortie.config.decode_notifications import NOTIFICATIONS_KEY
from sortie.config.decode_rules import KEYS_OF_RULES, RULES_KEY, SECTIONS_OF_RULES
from sortie.config.notifications import NotificationTarget
from sortie.config.rules import WrittenRule
from sortie.config.schemas import Schemas
from sortie.config.settings import Isolation
from sortie.config.token_rates import TokenRate
from sortie.config.tools import TOOLS_SHAPE

DIALECT = "https://json-schema.org/draft/2020-12/schema"
_MILLISECONDS = "_ms"
_MODE: Literal["validation"] = "validation"


class _Generate(GenerateJsonSchema):
    """Leaves defaults out that JSON cannot hold, and says nothing of it."""

    ignored_warning_kinds = {"skipped-choice", "non-serializable-default"}  # noqa: RUF012


def json_schema(schemas: Schemas) -> dict[str, Any]:
    """Return the schema of a front matter with the blocks of these adapters.

    What only decoding can find, as two settings that contradict each other, it does not hold.
    """
    rate: type[BaseModel] = TokenRate
    models: dict[str, type[BaseModel]] = dict(SECTIONS)
    models |= {schema.block_name: schema.model for schema in schemas.blocks()}
    rule: type[BaseModel] = WrittenRule
    target: type[BaseModel] = NotificationTarget
    wanted = [(model, _MODE) for model in (*models.values(), rate, rule, target)]
    refs, shared = models_json_schema(wanted, by_alias=True, schema_generator=_Generate)
    properties: dict[str, Any] = {name: refs[model, _MODE] for name, model in models.items()}
    properties[RATES_KEY] = {
        "type": "object",
        "description": "What tokens cost, by model.",
        "additionalProperties": refs[TokenRate, _MODE],
    }
    properties["db_path"] = {"type": "string", "description": "The database of the daemon."}
    properties["tools"] = TOOLS_SHAPE | {"description": "The tools of Sortie's that agents have."}
    properties[RULES_KEY] = {
        "type": "array",
        "description": "Settings for the issues that match, laid over the top level's.",
        "items": refs[WrittenRule, _MODE],
    }
    properties[NOTIFICATIONS_KEY] = {
        "type": "array",
        "description": "Who is told of what, and how.",
        "items": refs[target, _MODE],
    }
    properties["isolation"] = {
        "type": "string",
        "enum": [isolation.value for isolation in Isolation],
        "default": Isolation.AUTO.value,
        "description": "Whether the programs of runs start in PID namespaces of their own.",
    }
    definitions = shared["$defs"]
    for definition in definitions.values():
        _put_right(definition)
    _let_rules_set(definitions, properties, schemas)
    kinds = (("tracker", schemas.trackers), ("agent", schemas.agents))
    for section, known in kinds:
        _name_kinds(definitions[properties[section]["$ref"].rpartition("/")[2]], known)
    return {
        "$schema": DIALECT,
        "title": "The front matter of a WORKFLOW.md",
        "description": "The workflow reference in the documentation explains every key.",
        "type": "object",
        "properties": properties,
        "required": ["tracker"],
        "$defs": definitions,
    }


def _put_right(definition: dict[str, Any]) -> None:
    """Drop the titles that are made of names, and write times as the file does."""
    definition.pop("title", None)
    if description := definition.get("description", "").partition("\n")[0]:
        definition["description"] = description.replace("``", "")
    for key, schema in definition.get("properties", {}).items():
        schema.pop("title", None)
        if key.endswith(_MILLISECONDS) and "default" in schema:
            schema["default"] = round(schema["default"] * 1000)


def _let_rules_set(
    definitions: dict[str, Any], properties: Mapping[str, Any], schemas: Schemas
) -> None:
    """Let a rule have the blocks that it may set; what is required of one it may leave out."""
    rule = definitions[properties[RULES_KEY]["items"]["$ref"].rpartition("/")[2]]
    agents = {schema.block_name for schema in schemas.agents.values()}
    for name in (*SECTIONS_OF_RULES, *agents):
        if "$ref" not in properties[name]:
            rule["properties"][name] = properties[name]
            continue
        whole = definitions[properties[name]["$ref"].rpartition("/")[2]]
        allowed = KEYS_OF_RULES.get(name, whole["properties"])
        keys = {key: shape for key, shape in whole["properties"].items() if key in allowed}
        block = {"type": "object", "properties": keys, "additionalProperties": False}
        rule["properties"][name] = {"anyOf": [block, {"type": "null"}]}


def _name_kinds(definition: dict[str, Any], known: Collection[str]) -> None:
    definition["properties"]["kind"] = definition["properties"]["kind"] | {"enum": sorted(known)}
