"""Secrets, frozen mappings, and models as code makes them."""

from __future__ import annotations

import json

import pytest
from pydantic import SecretStr, ValidationError

from sortie.config.settings import (
    AgentSettings,
    PollingSettings,
    ServerSettings,
    Settings,
    TrackerSettings,
    WorkspaceSettings,
)
from tests.config.sample import Board


def test_a_secret_shows_itself_only_when_asked() -> None:
    """However a secret is printed or serialized, it is asterisks, until it is asked for."""
    secret = SecretStr("hunter2")
    tracker = TrackerSettings(kind="file", api_key=secret)

    shown = [
        repr(secret),
        str(secret),
        f"{secret}",
        repr(tracker),
        str(tracker.model_dump()),
        tracker.model_dump_json(),
    ]

    assert all("***" in text and "hunter2" not in text for text in shown)
    assert secret.get_secret_value() == "hunter2"


def test_settings_can_be_made_by_code_and_not_changed() -> None:
    """Code gives milliseconds under the keys of the file and reads seconds; models are frozen."""
    settings = Settings(
        tracker=TrackerSettings(kind="file"),
        polling=PollingSettings(interval_ms=250),
        workspace=WorkspaceSettings(root="/w"),
        agent=AgentSettings(command=None, max_concurrent_agents_by_state={"todo": 1}),
        db_path="/db",
        blocks={"board": Board()},
    )

    assert settings.polling.interval == 0.25
    assert settings.agent.max_concurrent_agents_by_state == {"todo": 1}
    assert settings.block("board") == Board()
    assert settings.model_dump()["blocks"] == {"board": {"columns": 3, "view": "list", "code": "x"}}
    assert json.loads(settings.model_dump_json())["agent"]["max_concurrent_agents_by_state"] == {
        "todo": 1
    }
    with pytest.raises(KeyError):
        settings.block("file")
    with pytest.raises(ValidationError):
        settings.db_path = "/other"  # type: ignore[misc]


def test_a_port_is_given_only_if_someone_asked_for_it() -> None:
    """The default port and the same port asked for can be told apart, and are equal settings."""
    default, asked = ServerSettings(), ServerSettings(port=7678)

    assert not default.port_given
    assert asked.port_given
    assert default == asked
