"""What Codex gets leave for, by the rules."""

from __future__ import annotations

from typing import Any

import pytest

from sortie.agents.codex.leave import leave_for
from sortie.agents.permissions import PermissionRules

COMMAND = "item/commandExecution/requestApproval"
FILES = "item/fileChange/requestApproval"
READING = PermissionRules()
INSIDE = PermissionRules(inside={"default": "allow"})
ALL = PermissionRules(inside={"default": "allow"}, outside={"default": "allow"})


def command(*paths: str, kind: str = "read", cwd: str = "/w") -> dict[str, Any]:
    """Return a question about a command, as Codex takes it for one of a kind."""
    actions = [{"type": kind, "command": "x", "path": path} for path in paths]
    return {"command": "x", "cwd": cwd, "commandActions": actions}


def changed(*changes: tuple[str, str, str | None]) -> dict[str, Any]:
    """Return an item that changes files: kind, path and where it is moved to."""
    parts = [{"path": p, "kind": {"type": k, "move_path": to}} for k, p, to in changes]
    return {"changes": parts}


@pytest.mark.parametrize(
    ("params", "rules", "allowed"),
    [
        (command("/w/f"), READING, False),  # Codex calls `find . -delete` a search
        (command("/w/f", kind="search"), READING, False),
        (command("/w/f"), INSIDE, True),
        (command("/etc/passwd"), INSIDE, False),
        (command("f", "../f"), INSIDE, False),
        (command(cwd="/"), INSIDE, False),
        (command(cwd="/"), ALL, True),
        ({"command": "x"}, READING, False),
    ],
)
def test_a_command_is_execute_whatever_codex_takes_it_for(
    params: dict[str, Any], rules: PermissionRules, allowed: bool
) -> None:
    """With its directory and all paths that were found in it."""
    assert leave_for(COMMAND, params, None, rules, "/w").allowed is allowed


@pytest.mark.parametrize(
    ("item", "rules", "reason"),
    [
        (changed(("add", "/w/a", None)), INSIDE, "allowed by permissions.inside for edit"),
        (changed(("add", "/w/a", None), ("add", "/b", None)), INSIDE, "permissions.outside"),
        (changed(("update", "/w/a", "/b")), INSIDE, "denied by permissions.outside for move"),
        (
            changed(("add", "/w/a", None), ("delete", "/w/b", None)),
            PermissionRules(inside={"edit": "allow"}),
            "denied by permissions.inside for delete",
        ),
        (changed(), ALL, "is not known"),
        (None, ALL, "is not known"),
    ],
)
def test_all_parts_of_a_change_have_to_be_allowed(
    item: dict[str, Any] | None, rules: PermissionRules, reason: str
) -> None:
    """One that is not seen in full is denied."""
    found = leave_for(FILES, {"itemId": "i"}, item, rules, "/w")

    assert reason in found.reason
    assert found.allowed is reason.startswith("allowed")


def test_the_root_that_is_asked_for_counts() -> None:
    """Codex would go on to change files there without asking."""
    item = changed(("add", "/w/a", None))

    assert not leave_for(FILES, {"grantRoot": "/"}, item, INSIDE, "/w").allowed


@pytest.mark.parametrize(
    "asked",
    [
        {"fileSystem": {"write": ["/b"]}},
        {"fileSystem": {"write": [7]}},
        {"fileSystem": {"entries": [{"path": "/w", "access": "write"}]}},
        {"network": {"enabled": True}},
        {"dreams": {}},
        {},
        {"fileSystem": {"write": ["/w/a"]}, "network": {"enabled": True}},
    ],
)
def test_permissions_that_reach_outside_are_denied(asked: dict[str, Any]) -> None:
    """So are those of an unknown sort."""
    method = "item/permissions/requestApproval"

    assert not leave_for(method, {"permissions": asked}, None, INSIDE, "/w").allowed
