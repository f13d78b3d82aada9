"""Decode ``rules``: each is laid over the top level of the front matter, and decoded as that is."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping

from msgspec import Struct
from msgspec.structs import replace

from sortie.config.blocks import decode_block
from sortie.config.context import DecodeContext
from sortie.config.fields import fields_of
from sortie.config.kubernetes import named_clusters
from sortie.config.messages import describe, nearest
from sortie.config.report import Report
from sortie.config.rules import WrittenRule
from sortie.config.settings import AgentSettings, Rule, Settings
from sortie.documents import Node, Place
from sortie.model import LOCAL, Problem

RULES_KEY = "rules"

_BY_STATE = "max_concurrent_agents_by_state"
KEYS_OF_RULES: Mapping[str, Collection[str]] = {
    "agent": set(fields_of(AgentSettings)) - {"max_concurrent_agents", _BY_STATE},
    "tracker": ("active_states", "in_progress_state", "handoff_state", "comments"),
}
"""The keys of these blocks that a rule may set; of the others, all."""

SECTIONS_OF_RULES = (
    "agent",
    "forge",
    "hooks",
    "questions",
    "repository",
    "sandbox",
    "self_review",
    "tools",
    "tracker",
    "verify",
)

DecodeOne = Callable[[Node], tuple[Settings | None, list[Problem]]]
"""Decode a front matter without rules."""


class _Written(Struct, kw_only=True):
    """A rule as far as it could be read; ``document`` is the front matter for its issues."""

    at: int
    name: str
    node: Node
    own: WrittenRule
    document: Node


class RuleDecoder(Struct, kw_only=True):
    """Decodes all rules of a front matter; ``problems`` are those that the top level has not.

    ``agents`` are the names of the agents' blocks, which rules may have, and ``top_level`` all that
    stand at the top level.
    """

    document: Node
    agents: Collection[str]
    top_level: Collection[str]
    context: DecodeContext
    decode_one: DecodeOne
    known: Collection[Problem]
    problems: list[Problem]

    def decode(self, node: Node) -> Iterator[tuple[int, Rule]]:
        """Yield the rules that can be used, with their positions; report what is wrong with any."""
        if not isinstance(node.value, tuple):
            self._tell(node, RULES_KEY, f"needs a list of rules, not {describe(node.value)}")
            return
        names: set[str] = set()
        for at, item in enumerate(node.items()):
            written = self._written(at, item)
            if written is None:
                continue
            if written.name in names:
                message = f'"{written.name}" is the name of an earlier rule'
                self._tell(item.at(("name",)) or item, f"{RULES_KEY}[{at}].name", message)
            names.add(written.name)
            rule = self._rule(written)
            if rule is not None:
                yield at, rule

    def _tell(self, node: Node, key: str, message: str) -> None:
        self.problems.append(node.where.problem(key, message))

    def _written(self, at: int, item: Node) -> _Written | None:
        """Read a rule's own keys, and lay the rest over the top level."""
        key = f"{RULES_KEY}[{at}]"
        if not isinstance(item.value, Mapping):
            self._tell(item, key, f"needs a mapping, not {describe(item.value)}")
            return None
        fields = fields_of(WrittenRule)
        mine = replace(item, value={k: n for k, n in item.value.items() if k in fields})
        report = Report(mine)
        own = decode_block((), WrittenRule, self.context, report)
        self._take(report.problems, key, item)
        over: dict[str, Node] = {}
        for name, node in item.value.items():
            if name in SECTIONS_OF_RULES or name in self.agents:
                over[name] = self._allowed(name, node, key)
            elif name not in fields:
                of_rules = {*fields, *SECTIONS_OF_RULES, *self.agents}
                message = f"unknown key; {nearest(name, of_rules)}"
                if name in self.top_level:
                    message = "cannot be set by a rule"
                self._tell(node.key or node, f"{key}.{name}", message)
        if not isinstance(own, WrittenRule):
            return None
        document = lay_over(self.document, replace(item, value=over))
        hosts = item.at(("hosts",))
        if own.hosts is not None and hosts is not None:
            document = self._on_hosts(document, hosts, own.hosts, key)
        name = own.name or f"rule-{at + 1}"
        return _Written(at=at, name=name, node=item, own=own, document=document)

    def _allowed(self, name: str, node: Node, key: str) -> Node:
        allowed = KEYS_OF_RULES.get(name)
        if allowed is None or not isinstance(node.value, dict):
            return node
        for entry, inner in node.value.items():
            if entry in allowed:
                continue
            message = "cannot be set by a rule"
            if entry == "max_concurrent_agents":
                message = "stands in the rule itself, not in its agent"
            elif name == "agent" and entry not in fields_of(AgentSettings):
                continue  # the decoder of the block says so
            self._tell(inner.key or inner, f"{key}.{name}.{entry}", message)
            node = node.without_entry(entry)
        return node

    def _on_hosts(self, document: Node, node: Node, hosts: tuple[str, ...], key: str) -> Node:
        """Let the rule's runs be on its hosts only, which have to be among all."""
        worker = document.at(("worker",))
        pods = self.document.at(("worker", "kubernetes"))
        listed = self.document.at(("worker", "ssh_hosts"))
        known = [str(item.value) for item in listed.items()] if listed else []
        place = "ssh_hosts"
        clusters = named_clusters(pods) if pods is not None else {}
        if clusters:
            known, place = list(clusters), "kubernetes.clusters"
        items = node.items() or (node,)
        for item, host in zip(items, hosts, strict=False):
            if host not in (known or [LOCAL]):
                message = f"needs one of worker.{place}, not {describe(host)}"
                self._tell(item, f"{key}.hosts", message if known else f"{message}; none is named")
        if not known or worker is None:
            return document
        if pods is None or not clusters:
            chosen = replace(node, value=tuple(items))
            return document.with_entry("worker", worker.with_entry("ssh_hosts", chosen))
        kept = tuple(clusters[host] for host in hosts if clusters.get(host) is not None)
        if kept:
            pods = pods.with_entry("clusters", replace(node, value=kept))
        return document.with_entry("worker", worker.with_entry("kubernetes", pods))

    def _take(self, problems: Collection[Problem], key: str, rule: Node) -> None:
        """Report what the top level has not, under the rule's key, and at a place in the rule."""
        for problem in problems:
            if problem not in self.known:
                whole = f"{key}.{problem.key}" if problem.key else key
                place = self._place_in(rule, problem)
                self.problems.append(
                    replace(problem, key=whole, line=place.line, column=place.column)
                )

    def _place_in(self, rule: Node, problem: Problem) -> Place | Problem:
        """Return where in a rule a problem comes from that only the rule has: what is said of a key
        that it takes away is found at the section of the top level."""
        path = tuple(problem.key.split("."))
        above = [found.where for found in _along(self.document, path)]
        if all((problem.line, problem.column) != (at.line, at.column) for at in above):
            return problem
        return next(reversed(tuple(_along(rule, path))), rule).where

    def _rule(self, written: _Written) -> Rule | None:
        settings, problems = self.decode_one(written.document)
        self._take(problems, f"{RULES_KEY}[{written.at}]", written.node)
        if settings is None:
            return None
        own = written.own
        return Rule(
            name=written.name,
            when=own.when,
            settings=settings.model_copy(
                update={
                    "rule": written.name,
                    "prompt": own.prompt or "",
                    "stage_result": own.stage.result,
                }
            ),
            max_concurrent_agents=own.max_concurrent_agents,
            guaranteed=own.guaranteed,
            burst_to=own.burst_to,
            stage=own.stage,
        )


def _along(node: Node, path: tuple[str, ...]) -> Iterator[Node]:
    """Yield the nodes on a path that are there, the outermost first."""
    for length in range(1, len(path) + 1):
        found = node.at(path[:length])
        if found is not None:
            yield found


def lay_over(under: Node, over: Node) -> Node:
    """Return a mapping with another laid over it, key by key; null takes a key away."""
    if not isinstance(under.value, dict) or not isinstance(over.value, dict):
        return over
    merged = dict(under.value)
    for key, node in over.value.items():
        if node.value is None:
            merged.pop(key, None)
        elif key in merged:
            merged[key] = lay_over(merged[key], node)
        else:
            merged[key] = lay_over(replace(node, value={}), node)
    return replace(under, value=merged)


def with_rules(settings: Settings, rules: tuple[Rule, ...]) -> Settings:
    """Return settings with their rules; what hides secrets knows those of all."""
    every = (settings, *(rule.settings for rule in rules))
    hidden = {
        "secret_variables": tuple(sorted({name for one in every for name in one.secret_variables})),
        "secret_parts": tuple(dict.fromkeys(part for one in every for part in one.secret_parts)),
    }
    of_all = tuple(
        rule.model_copy(update={"settings": rule.settings.model_copy(update=hidden)})
        for rule in rules
    )
    return settings.model_copy(update={**hidden, "rules": of_all})
