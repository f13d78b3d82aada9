"""The state: its JSON is the contract's, key for key."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter

from sortie.web.redaction import json_bytes
from sortie.web.state import StateView, to_json
from tests.web.conftest import STATE

NOON = "2026-01-01T12:00:00.000000Z"


def test_the_json_has_the_contracts_keys_in_its_order() -> None:
    """Every key is there, unknown values are null, and times are in UTC."""
    written = to_json(STATE)

    assert written.decode() == json.dumps(
        {
            "generated_at": NOON,
            "status": "running",
            "workflow": {"path": "/p/WORKFLOW.md", "valid": True, "errors": []},
            "counts": {
                "running": 1,
                "waiting": 1,
                "held": 1,
                "queued": 1,
                "blocked": 0,
                "unreadable": 1,
                "kept": 1,
            },
            "running": [
                {
                    "issue_id": "1",
                    "issue_identifier": "DEMO-1",
                    "issue_url": None,
                    "title": "Mend the fence",
                    "state": "To Do",
                    "run_id": "r-1",
                    "session_id": None,
                    "attempt": 0,
                    "turn": None,
                    "max_turns": 3,
                    "phase": "workspace",
                    "host": "local",
                    "workspace": "/w/DEMO-1",
                    "started_at": NOON,
                    "last_event_at": NOON,
                    "last_message": None,
                    "credits": None,
                    "tokens": None,
                    "cost_usd": None,
                    "estimated_usd": None,
                    "context_share": None,
                    "tool": None,
                    "model": None,
                    "files_modified": None,
                    "files_omitted": False,
                    "tool_uses": None,
                    "last_failure": None,
                }
            ],
            "waiting": [
                {
                    "issue_id": "2",
                    "issue_identifier": "DEMO-2",
                    "title": "",
                    "kind": "retry",
                    "attempt": 2,
                    "due_at": NOON,
                    "reason": "no available orchestrator slots",
                    "last_failure": {
                        "kind": "turn_failed",
                        "message": "it said no",
                        "at": NOON,
                        "run_id": "r-0",
                    },
                    "workspace": None,
                }
            ],
            "held": [
                {
                    "issue_id": "3",
                    "issue_identifier": "DEMO-3",
                    "title": "",
                    "reason": "agent_blocked",
                    "detail": "needs a person",
                    "since": NOON,
                    "last_failure": None,
                    "workspace": None,
                }
            ],
            "slots": {"total": 10, "free": 9, "by_state": {"to do": 1}, "by_host": {}},
            "totals": {
                "runs": 4,
                "turns": 9,
                "credits": 0.75,
                "tokens": None,
                "cost_usd": None,
                "estimated_usd": None,
                "seconds_running": 61.5,
            },
            "queued": [
                {
                    "issue_id": "4",
                    "issue_identifier": "DEMO-4",
                    "title": "",
                    "state": "To Do",
                    "reason": "no slot",
                }
            ],
            "blocked": [],
            "hosts": [
                {
                    "host": "east",
                    "up": False,
                    "used": 1,
                    "slots": 2,
                    "since": NOON,
                    "rests_until": NOON,
                    "reason": "it refused",
                }
            ],
            "tracker": {
                "unreadable": ["X.md: it is empty"],
                "unnamed_states": [
                    {"state": "Todo", "issues": 2, "first": "DEMO-7", "near": "To Do"}
                ],
                "rests_until": None,
                "rests_because": None,
                "budgets": [
                    {"name": "requests", "remaining": 12, "limit": 5000, "resets_at": NOON}
                ],
            },
            "usage_limit": None,
            "today": {
                "day": "",
                "timezone": "UTC",
                "tokens": None,
                "credits": None,
                "cost_usd": None,
                "estimated_usd": None,
                "daily_credits": None,
                "daily_cost_usd": None,
                "exhausted": None,
            },
            "kept": [
                {
                    "issue_id": "4",
                    "issue_identifier": "DEMO-4",
                    "title": "Paint the fence",
                    "workspaces": [
                        {"host": "local", "path": "/w/DEMO-4", "reason": "1 unpushed commit"}
                    ],
                    "next_look_at": NOON,
                    "until": NOON,
                }
            ],
        },
        separators=(",", ":"),
    )


@pytest.mark.parametrize("title", ["\x00\x1b\n\u2028", "</script>", "x" * 1_000_000, "\ud800"])
def test_any_title_is_valid_json(title: str) -> None:
    """Text from a tracker cannot break the answer."""
    evil = replace(STATE, running=(replace(STATE.running[0], title=title),))

    parsed = json.loads(to_json(evil))

    assert parsed["running"][0]["title"] == title


NUMBERS = st.none() | st.floats(allow_nan=False, allow_infinity=False)
TEXTS = st.text(st.characters())  # lone surrogates among them


@given(title=TEXTS, used=NUMBERS, errors=st.lists(TEXTS, max_size=3))
def test_every_state_is_written_as_plain_json_would_be(
    title: str, used: float | None, errors: list[str]
) -> None:
    """The fast way and the one for texts that are no UTF-8 write the same values."""
    (run,) = STATE.running
    workflow = replace(STATE.workflow, errors=tuple(errors))
    running = (replace(run, title=title, credits=used),)
    state = replace(STATE, workflow=workflow, running=running)

    read = json.loads(to_json(state))

    assert read == json.loads(json_bytes(TypeAdapter(StateView).dump_python(state, mode="json")))
    assert read["running"][0]["title"] == title
    assert read["workflow"]["errors"] == errors
