"""The settings of Go's program (sortie-ai/sortie) as ours."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from sortie.documents import Path
from sortie.model import same_state
from sortie.model.addresses import is_loopback
from sortie.workflow.importing.agents import AGENTS, import_agent, import_block
from sortie.workflow.importing.draft import Draft
from sortie.workflow.importing.reactions import import_reactions, import_self_review

KEPT: Mapping[str, str] = {
    "tracker": "kind endpoint api_key project query_filter active_states terminal_states"
    " handoff_state in_progress_state",
    "polling": "interval_ms",
    "workspace": "root",
    "hooks": "after_create before_run after_run before_remove timeout_ms",
    "agent": "max_turns max_sessions max_tokens max_concurrent_agents"
    " max_concurrent_agents_by_state turn_timeout_ms read_timeout_ms stall_timeout_ms"
    " stop_grace_ms max_retry_backoff_ms",
    "file": "path",
    "server": "host port",
    "logging": "level format",
    "worker": "ssh_hosts max_concurrent_agents_per_host ssh_strict_host_key_checking ssh_pass_env",
}
"""The keys that mean the same in both programs."""

_LOST: Mapping[Path, str] = {
    ("tracker", "handoff_evidence"): "with repository, repository.no_change says what becomes of"
    " an issue whose run has changed nothing",
    ("tracker", "no_change_state"): "with repository, set repository.no_change to this state",
    ("workspace", "retention_days"): "workspaces of finished issues are removed at once, but for"
    " work that was not pushed: workspace.keep_unpushed_days",
    ("agent", "token_warning_percent"): "the log warns at 80 %",
    ("agent", "max_consecutive_absences"): "an issue that the tracker does not show any more"
    " is let go",
    ("worker", "ssh_disallow_pass_env"): "agents on hosts have only what worker.ssh_pass_env names",
    ("notifications",): "nobody is notified; comments, the log, metrics and sortie status tell",
    ("dispatch", "max_consecutive_hops"): "a rule does not lead to another one",
}
_STATES: Mapping[str, tuple[list[str], list[str]]] = {
    "github": (["backlog", "in-progress", "review"], ["done", "wontfix"]),
    "jira": (["Backlog", "Selected for Development", "In Progress"], []),
}
_RATES = {
    "input_per_mtok": "input",
    "output_per_mtok": "output",
    "cache_read_per_mtok": "cached",
    "cache_write_per_mtok": "cache_write",
}
_VARIABLES = r"SORTIE_SSH_HOST|SORTIE_SELF_REVIEW_[A-Z_]+"
_COMMENTS = {
    "session.started": "on_dispatch",
    "session.completed": "on_completion",
    "session.failed": "on_failure",
}

Prompts = Callable[[str, Path], str | None]
"""Converts a template that a rule names and returns the name that it has here."""


def import_go(draft: Draft, prompts: Prompts) -> None:
    """Make our settings of those of Go's program."""
    for section, keys in KEPT.items():
        for key in keys.split():
            draft.keep(section, key)
    _notes(draft)
    _tracker(draft)
    _agent(draft)
    for path, why in _LOST.items():
        if path != ("notifications",):
            draft.lose(path, why)
    _notifications(draft)
    import_reactions(draft)
    import_self_review(draft)
    _rates(draft)
    _rules(draft, prompts)
    if str(draft.old("logging", "level")).lower() == "warn":
        draft.change(("logging", "level"), ("logging", "level"), "warning", "so it is called here")
    if (path := draft.old("db_path")) is not None:
        why = "must not be the other program's, which is refused"
        draft.change(("db_path",), ("db_path",), path, why)
    else:
        why = "the default may be there with what the other program has recorded"
        draft.add(("db_path",), ".sortie.db.imported", why)
    draft.lose_the_rest()


def _notes(draft: Draft) -> None:
    """Tell of values that are kept and do something else here."""
    for key in ("endpoint", "project"):
        if re.match(r"\$(?!\w+$|\{\w+\}$)", str(draft.old("tracker", key))):
            why = "a reference counts only where it is the whole value"
            draft.tell_change(("tracker", key), f"tracker.{key}", why)
    for key in ("after_create", "before_run", "after_run", "before_remove"):
        for name in re.findall(_VARIABLES, str(draft.old("hooks", key))):
            draft.tell_change(("hooks", key), f"hooks.{key}", f"{name} is not set here")
    if draft.old("worker", "ssh_hosts"):
        why = "hooks run on the host here; see hooks.run_on"
        draft.tell_change(("worker", "ssh_hosts"), "worker.ssh_hosts", why)
    host = draft.old("server", "host")
    if isinstance(host, str) and not is_loopback(host):
        why = "a server that others can reach needs a token of yours"
        draft.add(("server", "auth_token"), "$SORTIE_TOKEN", why)
    if draft.block("reactions") or draft.block("ci_feedback") or draft.block("self_review"):
        why = "reactions, verify and self_review need it; hooks do not clone and push then"
        draft.lack("repository.url", why)


def _tracker(draft: Draft) -> None:
    kind = draft.old("tracker", "kind")
    for key in ("on_dispatch", "on_completion", "on_failure"):
        draft.keep("tracker", "comments", key)
    version = draft.old("tracker", "api_version")
    if version is not None:
        deployment = "data-center" if str(version) == "2" else "cloud"
        draft.change(("tracker", "api_version"), ("jira", "deployment"), deployment, "")
    if draft.old("tracker", "path") is not None:
        draft.change(("tracker", "path"), ("file", "path"), draft.old("tracker", "path"), "")
    for key, states in zip(
        ("active_states", "terminal_states"), _STATES.get(kind, ()), strict=False
    ):
        if not draft.old("tracker", key) and states:
            draft.add(("tracker", key), states, f"the default there for {kind}")
    handoff, active = draft.old("tracker", "handoff_state"), draft.new.get("tracker", {})
    states = active.get("active_states", [])
    if isinstance(states, list) and any(same_state(str(handoff), str(each)) for each in states):
        left = [each for each in states if not same_state(str(handoff), str(each))]
        at: Path = ("tracker", "active_states")
        draft.change(at, at, left, "without the handoff state, which is no active one here")


def _agent(draft: Draft) -> None:
    kind = draft.old("agent", "kind")
    if kind is None:
        draft.add(("agent", "kind"), "claude-code", "the default there")
    import_agent(draft, kind or "claude-code", ("agent", "kind"), ("agent", "command"))
    if draft.old("agent", "max_turns") is None:
        draft.add(("agent", "max_turns"), 20, "the default there; 5 here")
    if (grace := draft.old("agent", "stop_grace_ms")) and isinstance(grace, int) and grace > 20_000:
        at: Path = ("agent", "stop_grace_ms")
        draft.change(at, at, 20_000, "the most that is taken here")
    main = kind or "claude-code"
    if main in AGENTS:
        import_block(draft, main, (main,))
    used = {rule.get("agent") for rule in _old_rules(draft)} | {"claude-code"}
    for other in AGENTS:
        if other == main or not draft.block(other):
            continue
        if other in used and AGENTS[other].kind not in draft.new:
            import_block(draft, other, (other,))
        else:
            draft.lose((other,), "write it into the rule that is for it, if there is one")


def _old_rules(draft: Draft) -> list[Mapping[str, Any]]:
    rules = draft.old("dispatch", "rules")
    return [rule for rule in rules if isinstance(rule, dict)] if isinstance(rules, list) else []


def _notifications(draft: Draft) -> None:
    for number, entry in enumerate(draft.old("notifications") or ()):
        path: Path = ("notifications", number)
        events = entry.get("events") or () if isinstance(entry, dict) else ()
        keys = [_COMMENTS[event] for event in events if event in _COMMENTS]
        if isinstance(entry, dict) and entry.get("kind") == "tracker_comment" and keys:
            for key in keys:
                draft.put(("tracker", "comments", key), True)
            draft.tell_change(path, "tracker.comments", "as far as there is such a comment")
        else:
            draft.lose(path, _LOST["notifications",])


def _rates(draft: Draft) -> None:
    rates: dict[str, Any] = {}
    main = draft.old("agent", "kind") or "claude-code"
    kinds = sorted(draft.block("token_rates"), key=lambda kind: kind != main)
    for kind in kinds:
        path: Path = ("token_rates", kind)
        given = draft.block(*path)
        model = draft.old(kind, "model") or "*"
        made = {_RATES[key]: value for key, value in given.items() if key in _RATES}
        if not {"input", "output"} <= made.keys():
            draft.lose(path, "rates here need both, of input and of output")
        elif model in rates or (kind != main and model == "*"):
            draft.lose(path, "rates are those of a model here: name it in token_rates")
        else:
            rates[model] = made
            draft.tell_change(path, "token_rates", "rates are those of a model, or of all (*)")
    if rates:
        draft.put(("token_rates",), rates)


def _rules(draft: Draft, prompts: Prompts) -> None:
    rules = []
    for number, rule in enumerate(draft.old("dispatch", "rules") or ()):
        if isinstance(rule, dict):
            rules.append(_rule(draft, ("dispatch", "rules", number), rule, prompts))
    if rules:
        draft.put(("rules",), rules)
    at: Path = ("dispatch", "default", "agent")
    if isinstance(kind := draft.old(*at), str):
        import_agent(draft, kind, at, ())
        if kind in AGENTS:
            import_block(draft, kind, (kind,))
    at = ("dispatch", "default", "template")
    if isinstance(template := draft.old(*at), str):
        if prompts(template, at) is None:
            draft.lose(at, "cannot be read; the prompt of this file is used")
        else:
            draft.tell_change(at, "the prompt", "it is the prompt of what no rule matches")


def _rule(draft: Draft, at: Path, rule: Mapping[str, Any], prompts: Prompts) -> dict[str, Any]:
    """Return a rule of ours."""
    own = Draft.of(draft, at)
    for key, value in rule.items():
        path = (key,)
        match key, value:
            case "name", str():
                name = re.sub(r"[^A-Za-z0-9_-]+", "-", value).strip("-_")[:64] or "rule"
                name = "the-default" if name == "default" else name
                why = "" if name == value else "letters, digits, - and _, and not default"
                own.change(path, path, name, why)
            case "match", dict():
                for each in value:
                    own.change(("match", each), ("when", each), value[each], _WHEN.get(each, ""))
            case "agent", str():
                import_agent(own, value, path, ())
                if (
                    "model" in draft.new.get("acp", {})
                    and own.new.get("agent", {}).get("kind") == "acp"
                ):
                    own.lack("acp.model", f"that of the top level goes for {value}, too")
                if value in AGENTS and value not in rule and AGENTS[value].kind not in draft.new:
                    import_block(own, value, (value,))
            case "agent", dict():
                import_agent(
                    own, str(value.get("kind", "")), ("agent", "kind"), ("agent", "command")
                )
                for each in value.keys() - {"kind", "command"}:
                    own.keep("agent", each)
            case "template", str():
                section = prompts(value, (*at, key))
                if section is None:
                    own.lose(path, "cannot be read; write it as the section of a named prompt")
                else:
                    own.change(path, ("prompt",), section, "a section at the end of the file")
            case (("stage" | "next"), _):
                own.lose(path, "a stage here is a rule with active_states of its own; see rules")
            case _, dict() if key in AGENTS:
                import_block(own, key, path)
    own.lose_the_rest()
    return own.new


_WHEN = {
    "title": "words that stand in it",
    "identifier": "globs",
}
