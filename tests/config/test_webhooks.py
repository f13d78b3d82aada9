"""The ``webhooks`` block: secrets are references, and never shown."""

from __future__ import annotations

import pytest

from sortie.config.reload import keep_restart_only, needs_restart
from tests.config.sample import GOOD, around, decoded, settings_of

ENV = around({"HOOK": "0123456789abcdef", "SHORT": "abc"})
NOTHING = "wakes nothing, unless a rule has it: neither tracker nor forge is gitlab"


def test_a_secret_is_looked_up_and_kept_from_agents() -> None:
    """Its variable counts as one with a secret."""
    settings = settings_of(f"{GOOD}webhooks: {{gitlab: {{secret: $HOOK}}}}\n", ENV)

    assert settings.webhooks.secrets == {"gitlab": "0123456789abcdef"}
    assert "HOOK" in settings.secret_variables
    assert "0123456789abcdef" not in repr(settings)


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("{gitlab: {secret: $GONE}}", "gitlab.secret: is required, but $GONE is not set or empty"),
        ("{gitlab: {secret: hidden-word}}", "gitlab.secret: needs a reference such as $TOKEN"),
        ("{gitlab: {secret: {a: hidden-word}}}", "gitlab.secret: needs a text"),
        ("{gitlab: hidden-word}", "gitlab: needs a mapping"),
        ("{gitlab: {secret: $SHORT}}", "gitlab.secret: needs a secret of at least 4 characters"),
        ("{gitlab: {}}", "gitlab.secret: is required"),
        ("{port: 0}", "port: needs a whole number from 1 to 65535, not 0"),
        ("{port: 7678, gitlab: {secret: $HOOK}}", "port: is server.port as well"),
        ("{github: {secrt: $HOOK}}", 'github.secrt: unknown key; did you mean "secret"?'),
    ],
)
def test_a_fault_is_told_without_what_may_be_a_secret(written: str, expected: str) -> None:
    """At its place."""
    problems = decoded(f"{GOOD}webhooks: {written}\n", ENV).problems

    told = [f"{problem.key}: {problem.message}" for problem in problems]
    assert any(text.startswith(f"webhooks.{expected}") for text in told)
    assert "hidden-word" not in str(told)


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("webhooks: {gitlab: {secret: $HOOK}}", [NOTHING]),
        (
            "server: {port: 0}\nwebhooks: {gitlab: {secret: $HOOK}}",
            ["needs a port, as server.port is 0", NOTHING],
        ),
        ("server: {port: 0}\nwebhooks: {port: 8081, gitlab: {secret: $HOOK}}", [NOTHING]),
        (
            "webhooks: {port: 8081}",
            ["opens a port for no service; name one, such as github, with its secret"],
        ),
    ],
)
def test_what_leads_to_nothing_is_told(written: str, expected: list[str]) -> None:
    """A service that is neither tracker nor forge, and a port that is nowhere."""
    problems = decoded(f"{GOOD}{written}\n", ENV).problems

    assert [problem.message for problem in problems] == expected


def test_a_secret_changes_at_once_and_the_port_with_a_restart() -> None:
    """As the listener is opened at the start."""
    old = settings_of(f"{GOOD}webhooks: {{port: 8081, gitlab: {{secret: $HOOK}}}}\n", ENV)
    other = around({"HOOK": "fedcba9876543210"})
    new = settings_of(f"{GOOD}webhooks: {{port: 8082, gitlab: {{secret: $HOOK}}}}\n", other)

    kept = keep_restart_only(old, new)

    assert needs_restart(old, new) == ("webhooks.port",)
    assert kept.webhooks.port == 8081
    assert kept.webhooks.secrets == {"gitlab": "fedcba9876543210"}


def test_a_rule_has_no_webhooks() -> None:
    """A process takes deliveries once."""
    problems = decoded(f"{GOOD}rules: [{{name: a, webhooks: {{}}}}]\n", ENV).problems

    assert [problem.message for problem in problems] == ["cannot be set by a rule"]
