"""Whether Codex gets leave for what it asks, by the rules of WORKFLOW.md; pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from msgspec import Struct

from sortie.agents.codex.items import change_kind, command_paths
from sortie.agents.permissions import PermissionRules, is_inside, ruling_for
from sortie.codex import approvals
from sortie.json_rpc import values

_MCP_CALL = "mcp_tool_call"


class Leave(Struct, frozen=True, kw_only=True):
    """What is answered to a question, and both in words for people."""

    allowed: bool
    question: str
    reason: str


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
    reasons: list[str] = []
    for each in wanted:
        outside = each.outside or (each.path is not None and not is_inside(each.path, workspace))
        ruling = ruling_for(each.kind, rules, outside=outside)
        if not ruling.allowed:
            return Leave(allowed=False, question=question, reason=f"denied {ruling.reason}")
        reasons.append(ruling.reason)
    return Leave(allowed=True, question=question, reason=f"allowed {reasons[0]}")


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
