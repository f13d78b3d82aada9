"""Targets of notifications as they are written, and what is wrong with them."""

from __future__ import annotations

import pytest

from sortie.model.notifications import NOTIFIED_EVENTS
from tests.config.sample import GOOD, around, findings, settings_of
from tests.notifications.rig import KEY

CHAT = "url: slack://a/b/c"
HOOK = f"webhook: https://x.example/hook, secret: {KEY}"


def target(keys: str) -> str:
    return f"{GOOD}notifications:\n  - {{{keys}}}\n"


def test_targets_have_names_and_defaults() -> None:
    """The scheme of an address, with a number where it is taken."""
    text = GOOD + (
        "notifications:\n"
        f"  - {{events: all, {CHAT}}}\n"
        f"  - {{events: [held, held], {CHAT}, rules: default}}\n"
        f"  - {{events: [question], {HOOK}, name: mine}}\n"
        f"  - {{events: all, {HOOK}}}\n"
    )

    chat, other, mine, hook = settings_of(text).notifications

    assert [one.name for one in (chat, other, mine, hook)] == [
        "slack",
        "slack-2",
        "mine",
        "webhook",
    ]
    assert (chat.events, other.events) == (NOTIFIED_EVENTS, ("held",))
    assert (chat.bundle, chat.give_up, chat.rules, other.rules) == (60, 86_400, None, ("default",))
    assert mine.key == b"secret-of-a-test-0123456789"


@pytest.mark.parametrize(
    ("written", "problem"),
    [
        ("notifications: 7\n", "W:9:16: notifications: needs a list of targets, not 7"),
        ("notifications: [7]\n", "W:9:17: notifications[0]: needs a mapping, not 7"),
    ],
)
def test_what_is_no_list_of_targets(written: str, problem: str) -> None:
    """It is said where it stands."""
    assert findings(GOOD + written) == [problem]


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        (CHAT, "notifications[0].events: is required"),
        (f"events: [held, helt], {CHAT}", "needs one of run_failed, held, question"),
        (f"events: [], {CHAT}", "needs all or a list of"),
        ("events: all", "needs either url or webhook"),
        (f"events: all, {CHAT}, {HOOK}", "needs either url or webhook, not both"),
        ("events: all, url: no-address", "needs an address that apprise knows"),
        (f"events: all, {CHAT}, secret: {KEY}", "is for webhook"),
        ("events: all, webhook: https://x.example/", "secret: is required, to sign"),
        ("events: all, webhook: here, secret: " + KEY, "needs an address as https://"),
        ("events: all, webhook: https://x/, secret: whsec_AAAA", "base64 of 24 to 64"),
        (f"events: all, {HOOK}, bundle_ms: 5", "warning: notifications[0].bundle_ms: means"),
        (f"events: all, {CHAT}, ulr: x", 'unknown key; did you mean "url"?'),
        (f"events: all, {CHAT}, name: a b", "notifications[0].name: needs letters"),
        (f"events: all, {CHAT}, rules: docs", '"docs" is no rule'),
        (f'events: all, {CHAT}, quiet_hours: {{from: "25:00", to: "07:00"}}', "a time of day"),
        (f'events: all, {CHAT}, quiet_hours: {{from: "22:00"}}', "quiet_hours.to: is required"),
        ("events: all, url: $NOWHERE", "$NOWHERE is not set or empty"),
    ],
)
def test_wrong_targets(keys: str, said: str) -> None:
    """Each mistake is said at its place, and none of them shows an address or a secret."""
    found = findings(target(keys))

    assert len(found) == 1
    assert said in found[0]
    assert KEY not in found[0]


def test_names_are_different() -> None:
    """Two targets of one name could not be told apart."""
    text = GOOD + (
        f"notifications:\n  - {{events: all, {CHAT}, name: a}}\n"
        f"  - {{events: all, {CHAT}, name: a}}\n"
    )

    assert findings(text) == ["W:11:45: notifications[1].name: is the name of an earlier target"]


def test_secrets_and_their_variables_are_known() -> None:
    """Address, key, password and tokens; the variables are not handed to agents."""
    url = "slack://me:pass%20word-1@T0ken-0123456789abc/words"
    env = {"CHAT_URL": url, "HOOK_SECRET": KEY}
    text = GOOD + (
        "notifications:\n  - {events: all, url: $CHAT_URL}\n"
        "  - {events: all, webhook: https://x.example/hook, secret: $HOOK_SECRET}\n"
    )

    settings = settings_of(text, around(env=env))

    chat, hook = settings.notifications
    assert chat.secrets == {url, "pass%20word-1", "pass word-1", "T0ken-0123456789abc"}
    assert hook.secrets == {"https://x.example/hook", KEY, KEY.removeprefix("whsec_")}
    assert {"CHAT_URL", "HOOK_SECRET"} <= set(settings.secret_variables)
    assert url not in repr(settings)
    assert KEY not in repr(settings)
