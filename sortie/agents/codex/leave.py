"""Whether Codex gets leave for what it asks, by the rules of WORKFLOW.md; pure."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from msgspec import Struct

from sortie.agents.codex.items import change_kind, command_paths
from sortie.agents.permissions import PermissionRules, PermissionRuling, is_inside, ruling_for
from sortie.codex import approvals
from sortie.json_rpc import values
from sortie.model.asked_permissions import permission_name
from sortie.model.texts import cut

_MCP_CALL = "mcp_tool_call"
_SHOWN_LIMIT = 3000
"""Characters of what is asked for that people see before they allow it."""

_DIFFERS = frozenset(
    {
        "threadId",
        "turnId",
        "itemId",
        "approvalId",
        "startedAtMs",
        "reason",
        "commandActions",
        "proposedExecpolicyAmendment",
        "proposedNetworkPolicyAmendments",
    }
)
"""Keys of a request that may differ where the same is asked for again: ids, times, words about it,
and what Codex makes of the command."""


class Leave(Struct, frozen=True, kw_only=True):
    """What is answered to a question, and both in words for people.

    ``permission`` is what identifies what is asked for, where people are to be asked about it, and
    ``whole`` is all of that in words; None where the rules decide.
    """

    allowed: bool
    question: str
    reason: str
    permission: str | None = None
    whole: str = ""


class _Wanted(Struct, frozen=True):
    """One thing that is asked for: a tool of a kind, and the path that it is about, if any."""

    kind: str
    path: str | None = None
    outside: bool = False


def leave_for(
    method: str,
    params: Mapping[str, Any],
    item: Mapping[str, Any] | None,
    rules: PermissionRules,
    workspace: str,
) -> Leave:
    """Return whether something may be done: all that it consists of has to be allowed.

    ``item`` is the one that the request names, where it is known: a change of files stands in its
    item alone, so that one without is denied.
    """
    question = _question(method, params, item)
    if method == approvals.QUESTIONS:
        return Leave(
            allowed=False,
            question=question,
            reason="not answered: put questions into the last words of the turn",
        )
    wanted = list(_wanted(method, params, item))
    if not wanted:
        return Leave(allowed=False, question=question, reason="denied: what it asks is not known")
    rulings: list[PermissionRuling] = []
    for each in wanted:
        outside = each.outside or (each.path is not None and not is_inside(each.path, workspace))
        ruling = ruling_for(each.kind, rules, outside=outside)
        if not ruling.allowed and not ruling.asks:
            return Leave(allowed=False, question=question, reason=f"denied {ruling.reason}")
        rulings.append(ruling)
    asking = next((ruling for ruling in rulings if ruling.asks), None)
    if asking is None:
        return Leave(allowed=True, question=question, reason=f"allowed {rulings[0].reason}")
    if values.text(params, "kind") not in (None, "command"):
        reason = f"denied {asking.reason}: people are asked about commands, not about their input"
        return Leave(allowed=False, question=question, reason=reason)
    return Leave(
        allowed=False,
        question=question,
        reason=asking.reason,
        permission=_permission(method, params, wanted),
        whole=_whole(question, method, params, wanted),
    )


def _permission(method: str, params: Mapping[str, Any], wanted: Sequence[_Wanted]) -> str:
    """Return what identifies what is asked for: the same request, whatever Codex says about it."""
    given = {name: value for name, value in params.items() if name not in _DIFFERS}
    parts = sorted(f"{each.kind} {each.path}" for each in wanted)
    return permission_name(method, json.dumps(given, sort_keys=True), *parts)


def _whole(question: str, method: str, params: Mapping[str, Any], wanted: Sequence[_Wanted]) -> str:
    """Return a question with all that is asked for, and says so where it is cut."""
    match method:
        case approvals.COMMAND:
            more = f"in {values.text(params, 'cwd') or 'a directory that is not known'}"
        case approvals.FILE_CHANGE:
            more = "\n".join(f"{each.kind}: {each.path}" for each in wanted)
        case approvals.PERMISSIONS:
            more = json.dumps(values.mapping(params, "permissions"), sort_keys=True)
        case _:
            more = json.dumps(values.mapping(params, "_meta"), sort_keys=True)
    return f"{cut(question, _SHOWN_LIMIT)}\n\n{cut(more, _SHOWN_LIMIT)}"


def _wanted(
    method: str, params: Mapping[str, Any], item: Mapping[str, Any] | None
) -> Iterator[_Wanted]:
    match method:
        case approvals.COMMAND if values.mapping(params, "networkApprovalContext"):
            yield _Wanted("fetch", outside=True)
        case approvals.COMMAND:  # also one that only reads: it runs without Codex's sandbox
            yield _Wanted("execute", values.text(params, "cwd"))
            yield from (_Wanted("execute", path) for path in command_paths(params))
        case approvals.FILE_CHANGE:
            for change in values.items(item, "changes"):
                kind = change_kind(change)
                yield _Wanted(kind, values.text(change, "path"))
                if moved := values.text(change, "kind", "move_path"):
                    yield _Wanted(kind, moved)
            if root := values.text(params, "grantRoot"):
                yield _Wanted("edit", root)
        case approvals.PERMISSIONS:
            yield from _permissions(values.mapping(params, "permissions"))
        case approvals.MCP if values.text(params, "_meta", "codex_approval_kind") == _MCP_CALL:
            yield _Wanted("other")
        case _:
            return


def _permissions(asked: Mapping[str, Any]) -> Iterator[_Wanted]:
    """Yield what a request for more permissions consists of; what is not known is ``other``."""
    files = values.mapping(asked, "fileSystem")
    for name, kind in (("read", "read"), ("write", "edit")):
        paths = files.get(name)
        for path in paths if isinstance(paths, list) else []:
            yield _Wanted(kind, path if isinstance(path, str) else None, not isinstance(path, str))
    if values.items(files, "entries"):
        yield _Wanted("edit", outside=True)
    if values.mapping(asked, "network"):
        yield _Wanted("fetch", outside=True)
    if set(asked) - {"fileSystem", "network"}:
        yield _Wanted("other", outside=True)


def _question(method: str, params: Mapping[str, Any], item: Mapping[str, Any] | None) -> str:
    reason = values.text(params, "reason") or values.text(params, "message")
    match method:
        case approvals.COMMAND:
            host = values.text(params, "networkApprovalContext", "host")
            what = f"network: {host}" if host else f"execute: {values.text(params, 'command')}"
        case approvals.FILE_CHANGE:
            paths = [values.text(change, "path") or "?" for change in values.items(item, "changes")]
            what = f"edit: {', '.join(paths[:10]) or 'files that are not known'}"
        case approvals.PERMISSIONS:
            what = "permissions"
        case approvals.QUESTIONS:
            asked = [
                values.text(one, "question") or "?" for one in values.items(params, "questions")
            ]
            what = f"question: {' '.join(asked)}"
        case _:
            what = f"tool of {values.text(params, 'serverName') or 'a server'}"
    return f"{what} ({reason})" if reason else what
