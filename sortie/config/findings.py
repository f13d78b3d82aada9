"""Rules that several settings have to obey together."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from pydantic import BaseModel

from sortie.config.forge_kinds import repository_findings
from sortie.config.kubernetes import kubernetes_findings
from sortie.config.limits import limit_findings
from sortie.config.questions import QuestionsSettings
from sortie.config.report import Finding
from sortie.config.sandbox import sandbox_findings
from sortie.config.schemas import AgentSchema, BlockSchema, TrackerSchema
from sortie.config.settings import AgentSettings, HookSettings, ServerSettings, TrackerSettings
from sortie.config.store import store_findings
from sortie.config.trust import files_findings, trust_findings
from sortie.config.webhook_findings import webhook_findings
from sortie.config.worker import WorkerSettings
from sortie.documents import Path
from sortie.model import LOCAL, state_key
from sortie.model.addresses import is_endpoint, is_loopback
from sortie.model.tools import ToolName


def _warning(path: Path, message: str, *needs: Path) -> Finding:
    return Finding(path=path, message=message, severity="warning", needs=needs)


TRACKER_KEYS = ("endpoint", "api_key", "project", "query_filter")
"""The keys of ``tracker`` that mean something to some trackers only."""

_KIND: Path = ("tracker", "kind")
_ACTIVE: Path = ("tracker", "active_states")
_TERMINAL: Path = ("tracker", "terminal_states")
_HANDOFF: Path = ("tracker", "handoff_state")
_IN_PROGRESS: Path = ("tracker", "in_progress_state")
_LABELS: Path = ("tracker", "label_states")


def tracker_findings(tracker: TrackerSettings) -> Iterator[Finding]:
    """Yield what is wrong with how states go together."""
    active = {state_key(state) for state in tracker.active_states}
    terminal = {state_key(state) for state in tracker.terminal_states}
    if not active and not terminal:
        message = "is empty, and so is terminal_states; name the states in which agents work"
        yield Finding(path=_ACTIVE, message=message, needs=(_TERMINAL,))
    elif not active:
        yield _warning(_ACTIVE, "is empty, so no issue will be worked on", _TERMINAL)
    for position, state in enumerate(tracker.terminal_states):
        if state_key(state) in active:
            message = f'"{state}" is in active_states too; a state is one or the other'
            yield Finding(path=(*_TERMINAL, position), message=message)
    start, handoff = tracker.in_progress_state, tracker.handoff_state
    if start is not None and state_key(start) not in active:
        message = f'"{start}" is not in active_states; a run would stop itself'
        yield Finding(path=_IN_PROGRESS, message=message, needs=(_ACTIVE,))
    if handoff is not None and state_key(handoff) in active:
        message = f'"{handoff}" is in active_states; an issue handed over would run again'
        yield Finding(path=_HANDOFF, message=message)
    elif handoff is not None and state_key(handoff) in terminal:
        message = f'"{handoff}" is in terminal_states; its workspace would be removed unseen'
        yield Finding(path=_HANDOFF, message=message)
    yield from _label_findings(tracker)


def _label_findings(tracker: TrackerSettings) -> Iterator[Finding]:
    terminal, earlier = set(map(state_key, tracker.terminal_states)), set[str]()
    for position, state in enumerate(tracker.label_states):
        key = state_key(state)
        if key in terminal:
            message = (
                f'"{state}" is in terminal_states; only a state of the tracker\'s own ends issues'
            )
            yield Finding(path=(*_LABELS, position), message=message, needs=(_TERMINAL,))
        if key in earlier:
            yield Finding(path=(*_LABELS, position), message=f'"{state}" stands twice')
        earlier.add(key)


def adapter_findings(tracker: TrackerSettings, schema: TrackerSchema) -> Iterator[Finding]:
    """Yield what the chosen tracker lacks, and what means nothing to it."""
    subject = f"the {tracker.kind} tracker"
    for key in TRACKER_KEYS:
        path, value = ("tracker", key), getattr(tracker, key)
        if value is None and key in schema.required:
            yield Finding(path=path, message=f"is required by {subject}", because=_KIND)
        if value is not None and key not in schema.required | schema.known:
            yield _warning(path, f"means nothing to {subject}, and is ignored")
    if tracker.required_labels and not schema.has_labels:
        message = f"would keep every issue from being worked on: {subject} has no labels"
        yield Finding(path=("tracker", "required_labels"), message=message)
    if tracker.label_states and not schema.has_label_states:
        message = (
            f"means nothing to {subject}: only a tracker with few states of its own keeps others "
            "as labels; remove it, and name the states where they are used"
        )
        yield Finding(path=_LABELS, message=message)


def agent_findings(agent: AgentSettings, tracker: TrackerSettings) -> Iterator[Finding]:
    """Yield a warning where nothing ends the work on an issue."""
    if tracker.handoff_state is None and agent.max_sessions == 0:
        message = (
            "is not set, and agent.max_sessions sets no limit: "
            "an issue that stays active is run without end"
        )
        yield _warning(_HANDOFF, message, ("agent", "max_sessions"))


_REPORTED = {"max_tokens": "tokens", "max_credits": "credits", "max_cost_usd": "cost"}


def unreported_findings(agent: AgentSettings, unreported: Collection[str]) -> Iterator[Finding]:
    """Yield the limits to what the agent never tells to have used."""
    for key, what in _REPORTED.items():
        if getattr(agent, key) and what in unreported:
            unreported_text = "no cost and no tokens" if what == "cost" else f"no {what}"
            message = f"limits nothing: a {agent.kind} agent reports {unreported_text}"
            yield _warning(("agent", key), message, ("agent", "kind"))


def worker_findings(worker: WorkerSettings) -> Iterator[Finding]:
    """Yield the hosts that are listed more than once, or named as this machine is, and what does
    not go together."""
    for position, host in enumerate(worker.ssh_hosts):
        if host == LOCAL:
            message = f'"{LOCAL}" means this machine everywhere; give the host another alias'
            yield Finding(path=("worker", "ssh_hosts", position), message=message)
        if host in worker.ssh_hosts[:position]:
            yield Finding(path=("worker", "ssh_hosts", position), message=f'"{host}" stands twice')
    if worker.ssh_reattach and worker.ssh_secret_delivery == "inline":
        message = "does not go with worker.ssh_secret_delivery: inline"
        yield Finding(path=("worker", "ssh_reattach"), message=message)
    if worker.kubernetes is not None:
        if worker.ssh_hosts:
            message = "cannot stand beside worker.ssh_hosts: runs are in pods or on hosts"
            yield Finding(path=("worker", "kubernetes"), message=message)
        per_host = worker.max_concurrent_agents_per_host
        yield from kubernetes_findings(worker.kubernetes, per_host)


def hook_findings(hooks: HookSettings, secrets: Collection[str]) -> Iterator[Finding]:
    """Yield the variables for hooks that hold a secret; ``secrets`` are the names of those."""
    for position, name in enumerate(hooks.pass_env):
        if name in secrets:
            message = f"{name} holds a secret of the tracker or the server, which no hook is given"
            yield Finding(path=("hooks", "pass_env", position), message=message)


def server_findings(server: ServerSettings) -> Iterator[Finding]:
    """Yield an error where a server without a given token could be reached from outside."""
    if server.port != 0 and server.auth_token is None and not is_loopback(server.host):
        message = (
            f'"{server.host}" can be reached from outside, which needs server.auth_token: '
            "set it to a reference such as $TOKEN, or set SORTIE_SERVER_AUTH_TOKEN"
        )
        needs: tuple[Path, ...] = (("server", "auth_token"), ("server", "port"))
        yield Finding(path=("server", "host"), message=message, needs=needs)
    if server.public_url is not None and not is_endpoint(server.public_url):
        message = "needs an address as https://sortie.example.com"
        yield Finding(path=("server", "public_url"), message=message)


def tools_findings(
    tools: Sequence[ToolName],
    agent: BlockSchema | None,
    blocks: Mapping[str, BaseModel],
    questions: QuestionsSettings | None,
) -> Iterator[Finding]:
    """Yield a warning where the agent does not get tools that are named."""
    if ToolName.ASK in tools and len(tools) < len(ToolName) and questions is None:
        yield _warning(("tools",), "has ask, which agents get only with a block questions")
    if tools and isinstance(agent, AgentSchema) and agent.block_name in blocks:
        hindrance = agent.tools_hindrance(blocks[agent.block_name])
        if hindrance is not None:
            yield _warning(("tools",), f"means nothing to the agent, {hindrance}")


def question_findings(
    questions: QuestionsSettings | None, schema: AgentSchema, blocks: Mapping[str, BaseModel]
) -> Iterator[Finding]:
    """Yield a warning where something is left to people who are not asked."""
    block = blocks.get(schema.block_name)
    key = None if block is None else schema.leaves_to_people(block)
    if key is not None and questions is None:
        message = "has people asked, which needs the block questions: without it that is denied"
        yield _warning((schema.block_name, key), message)


def all_findings(
    parts: Mapping[str, Any],
    chosen: tuple[BlockSchema | None, BlockSchema | None],
    blocks: Mapping[str, BaseModel],
    secrets: Collection[str],
) -> Iterator[Finding]:
    """Yield what is wrong with several settings together; ``parts`` are the decoded sections."""
    schema, agent_schema = chosen
    if (tracker := parts["tracker"]) is not None:
        if isinstance(schema, TrackerSchema):
            yield from adapter_findings(tracker, schema)
            if parts["trust"] is not None:
                yield from trust_findings(parts["trust"], tracker.kind, schema.rights)
            if schema.block_name in blocks:
                yield from schema.check(tracker, blocks[schema.block_name])
        yield from tracker_findings(tracker)
        yield from agent_findings(parts["agent"], tracker)
        yield from limit_findings(parts["agent"], tracker)
    if isinstance(agent_schema, AgentSchema):
        yield from unreported_findings(parts["agent"], agent_schema.unreported)
        if agent_schema.block_name in blocks:
            yield from agent_schema.check(parts["agent"], blocks[agent_schema.block_name])
        yield from question_findings(parts["questions"], agent_schema, blocks)
    yield from repository_findings(parts)
    if parts["trust"] is not None and parts["repository"] is not None:
        has_repository = parts["repository"].url is not None
        yield from files_findings(parts["trust"], has_repository=has_repository)
    yield from hook_findings(parts["hooks"], secrets)
    yield from worker_findings(parts["worker"])
    if parts["sandbox"] is not None and parts["worker"] is not None:
        leads = isinstance(agent_schema, AgentSchema) and agent_schema.leads(parts["agent"])
        repository = parts["repository"]
        yield from sandbox_findings(
            parts["sandbox"],
            parts["worker"],
            leads=leads,
            has_repository=repository is None or repository.url is not None,
        )
    if parts["store"] is not None:
        yield from store_findings(parts["store"])
    yield from server_findings(parts["server"])
    yield from webhook_findings(parts)
