"""Decode the front matter of a WORKFLOW.md into settings, or say all that is wrong with it."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from hashlib import sha256
from typing import Annotated, Any

from msgspec import Struct
from pydantic import BaseModel, SecretStr

from sortie.config.adapter_blocks import adapter_blocks, chosen_schema
from sortie.config.block import Block
from sortie.config.blocks import decode_block
from sortie.config.context import DecodeContext
from sortie.config.decode_notifications import (
    NOTIFICATIONS_KEY,
    decode_targets,
    rules_of_targets,
)
from sortie.config.decode_rules import RULES_KEY, RuleDecoder, with_rules
from sortie.config.fields import sections_of
from sortie.config.findings import all_findings, tools_findings
from sortie.config.limits import drop_useless_limits
from sortie.config.messages import describe, misspelt, nearest
from sortie.config.overrides import overlay
from sortie.config.report import Finding, Report
from sortie.config.review_findings import review_findings
from sortie.config.rule_findings import rules_findings
from sortie.config.rules import DEFAULT_RULE
from sortie.config.schemas import BlockSchema, Schemas
from sortie.config.settings import AgentSettings, DaysKept, Isolation, Settings, WorkspaceSettings
from sortie.config.token_rates import TokenRate
from sortie.config.tools import Tools
from sortie.config.traces import traces_findings
from sortie.config.values import HostPathText, PathText, choice, whole
from sortie.documents import Node
from sortie.model import Problem

_SECRETS = ("SORTIE_SERVER_AUTH_TOKEN", "SORTIE_TRACKER_API_KEY")

_SECRET_PART = 8
"""Characters of a variable that is hidden by itself where it is a part of a secret.

A shorter one is a user's name as often as not, which stands in paths and greetings, too.
"""


class Decoded(Struct, frozen=True, kw_only=True):
    """The settings, None exactly where ``problems`` holds an error."""

    settings: Settings | None
    problems: tuple[Problem, ...]


class WrittenWorkspace(Block):
    """``WorkspaceSettings`` as written: the root has no default that is always the same."""

    root: PathText | None = None
    keep_unpushed_days: DaysKept = WorkspaceSettings.model_fields["keep_unpushed_days"].default
    keep_rescued_days: DaysKept = WorkspaceSettings.model_fields["keep_rescued_days"].default
    max_bytes: Annotated[int, whole(0)] = 0
    max_bytes_each: Annotated[int, whole(0)] = 0


class _WrittenRemotely(WrittenWorkspace):
    root: HostPathText | None = None


class _TopLevel(Block):
    """The settings that stand in no block."""

    db_path: PathText | None = None
    tools: Tools = ()
    isolation: Annotated[
        Isolation | None, choice(*(isolation.value for isolation in Isolation))
    ] = None


RATES_KEY = "token_rates"
"""The key of the rates, whose own keys are names of models."""

_OPTIONAL = frozenset({"self_review", "traces", "questions"})
"""The blocks whose absence means something else than their defaults."""

SECTIONS = sections_of(Settings) | {"workspace": WrittenWorkspace}
"""The blocks that every workflow file may have, by their keys."""


def decode(document: Node, *, schemas: Schemas, context: DecodeContext) -> Decoded:
    """Decode a front matter and its overrides; find every problem; never raise.

    The problems are in the order of the file, those of overrides last.
    """
    if not isinstance(document.value, Mapping):
        message = f"the front matter needs to be a mapping, not {describe(document.value)}"
        return Decoded(settings=None, problems=(document.place.problem("", message),))
    rules = document.at((RULES_KEY,))
    document = document.without_entry(RULES_KEY)

    def decode_one(front_matter: Node) -> tuple[Settings | None, list[Problem]]:
        return _decode_one(front_matter, schemas, context)

    settings, problems = decode_one(document)
    if rules is not None:
        decoder = RuleDecoder(
            document=document,
            agents={schema.block_name for schema in schemas.agents.values()},
            top_level=_top_level_keys(schemas),
            context=context,
            decode_one=decode_one,
            known=tuple(problems),
            problems=problems,
        )
        placed = tuple(decoder.decode(rules))
        if settings is not None and len(placed) == len(rules.items()):
            problems += rules_findings(settings, placed, rules, schemas)
        settings = settings and with_rules(settings, tuple(rule for _, rule in placed))
    targets = document.at((NOTIFICATIONS_KEY,))
    if settings is not None and targets is not None:
        names = {DEFAULT_RULE, *(rule.name for rule in settings.rules)}
        problems += rules_of_targets(settings, names, targets)
    problems.sort(key=lambda p: (p.path != context.path, p.line, p.column))
    if any(problem.severity == "error" for problem in problems):
        settings = None
    return Decoded(settings=settings, problems=tuple(problems))


def _decode_one(
    document: Node, schemas: Schemas, context: DecodeContext
) -> tuple[Settings | None, list[Problem]]:
    """Decode a front matter without rules; no settings where there is an error."""
    report = Report(document)
    blocks = [schema.block_name for schema in schemas.blocks()]
    report.document, problems_of_overrides = overlay(report.document, context, blocks)
    report.problems += problems_of_overrides
    settings = _decoded(report, schemas, context)
    if any(problem.severity == "error" for problem in report.problems):
        settings = None
    return settings, report.problems


def _top_level_keys(schemas: Schemas) -> set[str]:
    blocks = {schema.block_name for schema in schemas.blocks()}
    keys = {RATES_KEY, RULES_KEY, NOTIFICATIONS_KEY}
    return {*_TopLevel.model_fields, *keys, *SECTIONS, *blocks}


def _decoded(report: Report, schemas: Schemas, context: DecodeContext) -> Settings | None:
    _warn_of_unknown_keys(report, schemas)
    drop_useless_limits(report)
    tracker = chosen_schema(report, schemas, "tracker", None)
    agent = chosen_schema(report, schemas, "agent", AgentSettings.model_fields["kind"].default)
    as_written = report.document
    parts: dict[str, Any] = {
        name: decode_block((name,), model, context, report)
        for name, model in SECTIONS.items()
        if name not in _OPTIONAL or _is_written(report.document, name)
    }
    parts |= {name: None for name in _OPTIONAL if name not in parts}
    rates = _token_rates(report, context)
    targets = decode_targets(report, context)
    blocks = dict(adapter_blocks(report, schemas.trackers, tracker, context))
    secrets = {*_SECRETS, *report.secret_variables}
    blocks |= adapter_blocks(report, schemas.agents, agent, context)
    top_level = _top_level(report, context)
    workspace, remote_root = _workspace(report, as_written, parts["workspace"], context)
    for finding in all_findings(parts, (tracker, agent), blocks, secrets):
        _tell(report, finding)
    for finding in review_findings(parts, schemas, blocks):
        _tell(report, finding)
    for finding in traces_findings(parts["traces"], context.lookup):
        _tell(report, finding)
    for finding in tools_findings(top_level.tools, agent, blocks, parts["questions"]):
        _tell(report, finding)
    for schema in (tracker, agent):
        _warn(report, schema, blocks)
    if report.bad or tracker is None or agent is None or workspace is None:
        return None
    return Settings(
        **parts | {"workspace": workspace},
        db_path=top_level.db_path or str(context.directory / ".sortie.db"),
        isolation=top_level.isolation or Isolation.AUTO,
        blocks=blocks,
        token_rates=rates,
        tools=top_level.tools,
        notifications=targets,
        tracker_block=tracker.block_name,
        remote_root=parts["worker"].remote_root or remote_root,
        secret_variables=tuple(sorted(secrets)),
        secret_parts=tuple(_parts_of_secrets(secrets, context)),
    )


def _is_written(document: Node, name: str) -> bool:
    """Tell whether a block stands in the file; one without a value says nothing."""
    node = document.at((name,))
    return node is not None and node.value is not None


def _token_rates(report: Report, context: DecodeContext) -> dict[str, TokenRate]:
    """Return the rates by model."""
    node = report.document.at((RATES_KEY,))
    if node is None or node.value is None:
        return {}
    if not isinstance(node.value, Mapping):
        report.error(node, (RATES_KEY,), f"needs a mapping of models, not {describe(node.value)}")
        return {}
    decoded = {
        model: decode_block((RATES_KEY, model), TokenRate, context, report)
        for model in node.entries()
    }
    return {name: rate for name, rate in decoded.items() if isinstance(rate, TokenRate)}


def _parts_of_secrets(variables: Collection[str], context: DecodeContext) -> Iterator[SecretStr]:
    for name in sorted(variables):
        if len(text := context.lookup(name).strip()) >= _SECRET_PART:
            yield SecretStr(text)


def _warn_of_unknown_keys(report: Report, schemas: Schemas) -> None:
    known = _top_level_keys(schemas)
    assert isinstance(report.document.value, Mapping)
    for key, node in report.document.value.items():
        if key not in known:
            at_key = node.key or node
            if meant := misspelt(key, known):
                report.error(at_key, (key,), f'unknown key; did you mean "{meant}"?')
            else:
                report.warning(at_key, (key,), f"unknown key, ignored; {nearest(key, known)}")


def _top_level(report: Report, context: DecodeContext) -> _TopLevel:
    """Return what stands in no block; what is wrong with it is reported, and left out."""
    written = report.document.entries()
    entries = {key: written[key] for key in _TopLevel.model_fields if key in written}
    alone = Report(Node(value=entries, origin=report.document.place))
    decoded = decode_block((), _TopLevel, context, alone)
    report.problems += alone.problems
    report.bad |= alone.bad
    return decoded if isinstance(decoded, _TopLevel) else _TopLevel()


def _workspace(
    report: Report, document: Node, written: BaseModel | None, context: DecodeContext
) -> tuple[WorkspaceSettings | None, str]:
    """Return the settings for workspaces, and where these are on hosts."""
    if not isinstance(written, WrittenWorkspace):
        written = WrittenWorkspace()
    kept = written.model_dump(exclude={"root"})
    if written.root is not None:
        remotely = decode_block(("workspace",), _WrittenRemotely, context, Report(document))
        assert isinstance(remotely, _WrittenRemotely)  # it was good for this machine
        here = WorkspaceSettings(root=written.root, **kept)
        return here, remotely.root or written.root
    path, state = ("workspace", "root"), context.state_directory()
    if state is None:
        if not report.is_bad(path):
            message = "has no default where HOME is not set; write the directory's whole path"
            report.error(report.nearest(path), path, message)
        return None, ""
    digest = sha256(context.identity.encode("utf-8", "surrogateescape")).hexdigest()
    below = f"sortie/workspaces/{digest[:16]}"
    here = WorkspaceSettings(root=str(state / below), **kept)
    return here, f"~/.local/state/{below}"


def _tell(report: Report, finding: Finding) -> None:
    node, path = report.nearest(finding.path), report.document.as_written(finding.path)
    if finding.because is not None:
        asking = report.nearest(finding.because)
        node = asking.key or asking
    if any(report.is_bad(concerned) for concerned in (path, *finding.needs)):
        return
    if finding.severity == "error":
        report.error(node, path, finding.message)
    else:
        report.warning(node, path, finding.message)


def _warn(report: Report, schema: BlockSchema | None, blocks: Mapping[str, BaseModel]) -> None:
    if schema is None or schema.block_name not in blocks or report.is_bad((schema.block_name,)):
        return
    for dotted, message in schema.warn(blocks[schema.block_name]):
        path = tuple(dotted.split("."))
        report.warning(report.nearest(path), path, message)
