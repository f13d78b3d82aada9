"""The kiro block of WORKFLOW.md."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from sortie.agents import ADAPTERS
from sortie.agents.kiro.settings import KiroSettings, tools_hindrance, warn
from sortie.kiro.headless.arguments import ChatOptions


def test_the_adapter_is_found_by_its_kind() -> None:
    """The loader finds the folder, and its ADAPTER says what the rest needs to know."""
    adapter = ADAPTERS.load("kiro")

    assert (adapter.kind, adapter.block_name, adapter.block) == ("kiro", "kiro", KiroSettings)
    assert (adapter.default_command, adapter.env_names) == ("kiro-cli", ("KIRO_API_KEY",))
    assert "sortie-kiro-sim" in adapter.simulators


def test_defaults_trust_nothing() -> None:
    """An empty block is valid and names no option."""
    assert KiroSettings.model_validate({}).options() == ChatOptions()


def test_every_key_reaches_the_command_line() -> None:
    """A YAML list becomes the tuple of tools; values are trimmed."""
    block = {"model": " m-1 ", "agent": "ops", "trust_tools": ["read", " @git/log"]}

    options = KiroSettings.model_validate(block).options()

    assert options == ChatOptions(model="m-1", agent="ops", trust_tools=("read", "@git/log"))


@pytest.mark.parametrize(
    ("block", "key", "message"),
    [
        ({"trust_all_tools": True, "trust_tools": ["read"]}, (), "are mutually exclusive"),
        ({"trust_tools": ["read", ""]}, ("trust_tools", 1), "must not be empty"),
        ({"trust_tools": ["read,write"]}, ("trust_tools", 0), "without commas"),
        ({"trust_tools": [7]}, ("trust_tools", 0), "valid string"),
        ({"trust_tools": "read"}, ("trust_tools",), "valid tuple"),
        ({"trust_all_tools": "yes"}, ("trust_all_tools",), "valid boolean"),
        ({"trust_all_tools": None}, ("trust_all_tools",), "valid boolean"),
        ({"model": ""}, ("model",), "must not be empty"),
        ({"model": "--help"}, ("model",), "must not begin with '-'"),
        ({"model": 4}, ("model",), "valid string"),
        ({"agent": " "}, ("agent",), "must not be empty"),
        ({"agent": "a\0b"}, ("agent",), "must not contain control characters"),
        ({"modell": "x"}, ("modell",), "Extra inputs are not permitted"),
    ],
)
def test_a_bad_block_is_refused_at_its_key(
    block: dict[str, object], key: tuple[str | int, ...], message: str
) -> None:
    """One error, at the key that is wrong, in words of the operator."""
    with pytest.raises(ValidationError) as caught:
        KiroSettings.model_validate(block)

    (error,) = caught.value.errors()
    assert error["loc"] == key
    assert message in error["msg"]


def test_the_contract_names_the_conflict() -> None:
    """The documented sentence stands in the error."""
    with pytest.raises(
        ValidationError, match="trust_all_tools and trust_tools are mutually exclusive"
    ):
        KiroSettings(trust_all_tools=True, trust_tools=("read",))


def test_settings_cannot_be_changed() -> None:
    """A run keeps the settings it started with."""
    settings = KiroSettings()

    with pytest.raises(ValidationError, match="frozen"):
        setattr(settings, "model", "other")  # noqa: B010 - mypy knows that it is frozen


@pytest.mark.parametrize(
    ("settings", "keys"),
    [
        (KiroSettings(), ["kiro.trust_tools"]),
        (KiroSettings(trust_all_tools=True), []),
        (KiroSettings(trust_tools=("read",)), []),
    ],
)
def test_a_block_that_trusts_nothing_is_warned_about(
    settings: KiroSettings, keys: list[str]
) -> None:
    """Only neither trust key gives a warning."""
    assert [key for key, _ in warn(settings)] == keys


@pytest.mark.parametrize(
    ("block", "hindered"),
    [
        ({}, True),
        ({"trust_tools": ["read", "write"]}, True),
        ({"trust_tools": ["read", "shell"]}, False),
        ({"trust_tools": ["execute_bash"]}, False),
        ({"trust_all_tools": True}, False),
        ({"agent": "ops"}, False),
    ],
)
def test_tools_need_the_shell(block: dict[str, object], hindered: bool) -> None:
    """Unless a custom agent may have it, whose file is not read."""
    hindrance = tools_hindrance(KiroSettings.model_validate(block))

    assert (hindrance is not None) is hindered
    assert hindrance is None or "add shell to kiro.trust_tools" in hindrance
