"""The settings of Symphony as ours."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from sortie.documents import Path
from sortie.workflow.importing.agents import import_agent, import_block
from sortie.workflow.importing.draft import Draft

_KEPT: Mapping[str, str] = {
    "tracker": "required_labels active_states terminal_states",
    "polling": "interval_ms",
    "workspace": "root",
    "hooks": "after_create before_run after_run before_remove timeout_ms",
    "agent": "max_concurrent_agents max_turns max_retry_backoff_ms max_concurrent_agents_by_state",
    "worker": "ssh_hosts max_concurrent_agents_per_host",
    "server": "host port",
}
_PROVIDER: Mapping[str, Mapping[str, str]] = {
    "linear": {"endpoint": "endpoint", "api_key": "api_key"},
    "github": {"api_url": "endpoint", "token": "api_key", "repo": "project"},
    "gitlab": {"api_url": "endpoint", "api_key": "api_key", "project_path": "project"},
    "jira": {"base_url": "endpoint", "api_token": "api_key", "project_key": "project"},
}
"""The keys of ``tracker.provider`` by kind, and what they are called here."""

_KEYS = {
    "linear": {"api_key": "$LINEAR_API_KEY", "project": "$LINEAR_TEAM"},
    "github": {"api_key": "$GITHUB_TOKEN"},
    "gitlab": {"api_key": "$GITLAB_PAT"},
    "jira": {"api_key": "$JIRA_API_TOKEN", "endpoint": "$JIRA_BASE_URL"},
}
"""What is taken from the environment where the file does not say it."""

_ACTIVE = ["Todo", "In Progress"]
_TERMINAL = ["Closed", "Cancelled", "Canceled", "Duplicate", "Done"]
_TIMES = ("turn_timeout_ms", "read_timeout_ms", "stall_timeout_ms")


def import_symphony(draft: Draft) -> None:
    """Make our settings of those of Symphony."""
    for section, keys in _KEPT.items():
        for key in keys.split():
            draft.keep(section, key)
    _tracker(draft)
    command: Path = ("codex", "command")
    import_agent(draft, "codex", (), command)
    why = "Symphony runs Codex"
    draft.add(("agent", "kind"), draft.new["agent"]["kind"], why)
    import_block(draft, "codex", ("codex",))
    for key in _TIMES:
        if (value := draft.old("codex", key)) is not None:
            draft.change(("codex", key), ("agent", key), value, "")
    if draft.old("agent", "max_turns") is None:
        draft.add(("agent", "max_turns"), 20, "the default there; 5 here")
    if draft.old("server", "port") is None:
        draft.add(("server", "port"), 0, "no server is the default there; 7678 here")
    draft.lose(("observability",), "the dashboard and sortie status have no such settings")
    draft.lose_the_rest()


def _tracker(draft: Draft) -> None:
    kind = str(draft.old("tracker", "kind"))
    if kind == "memory":
        why = "the tracker of tests becomes one of files"
        draft.change(("tracker", "kind"), ("tracker", "kind"), "file", why)
        draft.put(("file", "path"), "issues")
    elif kind in _PROVIDER:
        draft.keep("tracker", "kind")
    else:
        draft.lose(("tracker", "kind"), "is no tracker here; set tracker.kind and what it needs")
    known, filters = _PROVIDER.get(kind, {}), dict[str, Any]()
    for base in (("tracker",), ("tracker", "provider")):
        for key, value in draft.block(*base).items():
            at: Path = (*base, key)
            if to := known.get(key):
                draft.change(at, ("tracker", to), value, "")
            elif str(value).startswith("$"):
                draft.lose(at, "no reference can stand in a filter: set tracker.query_filter")
            elif kind == "linear" and key == "project_slug":
                filters["project"] = {"slugId": {"eq": value}}
                why = "a filter; tracker.project is the key of the team here"
                draft.tell_change(at, "tracker.query_filter", why)
            elif kind == "linear" and key == "assignee":
                user = {"isMe": {"eq": True}} if value == "me" else {"id": {"eq": value}}
                filters["assignee"] = user
                draft.tell_change(at, "tracker.query_filter", "a filter")
            elif kind == "jira" and key == "email":
                why = "tracker.api_key is EMAIL:TOKEN here: write both into one variable"
                draft.lose(at, why)
    if filters:
        draft.put(("tracker", "query_filter"), json.dumps(filters))
    for key, value in _KEYS.get(kind, {}).items():
        if key not in draft.new["tracker"]:
            what = "the key of the Linear team, which Symphony does not need"
            why = what if key == "project" else "Symphony takes it from the environment"
            draft.add(("tracker", key), value, why)
    for key, states in (("active_states", _ACTIVE), ("terminal_states", _TERMINAL)):
        if kind in ("linear", "memory") and draft.old("tracker", key) is None:
            draft.add(("tracker", key), states, "the default there")
