"""The page of notifications: its tables, its examples, and its receiver."""

from __future__ import annotations

import subprocess
import sys
import time

import pytest
import trio
from pydantic import BaseModel

from sortie.config.fields import leaves_of
from sortie.config.notifications import NotificationTarget
from sortie.model.notifications import NOTIFIED_EVENTS
from sortie.notifications.channel import SendFailed
from sortie.notifications.webhook import open_webhook
from tests.config.sample import GOOD, around, findings
from tests.docs.pages import code_blocks, page, table, word
from tests.notifications.rig import KEY, outgoing, target
from tests.ports import free_port

TEXT = page("notifications.md")
EXAMPLES = [text for language, text in code_blocks(TEXT) if language == "yaml"]
(RECEIVER,) = [text for language, text in code_blocks(TEXT) if language == "python"]


def test_every_event_is_explained() -> None:
    """In the order of the settings, and no other."""
    assert [word(row["event"]) for row in table(TEXT, "event")] == list(NOTIFIED_EVENTS)


def test_every_key_of_a_target_is_explained() -> None:
    """And no other."""
    block: type[BaseModel] = NotificationTarget

    assert {word(row["key"]) for row in table(TEXT, "key")} == {
        ".".join(path) for path, _ in leaves_of(block)
    }


@pytest.mark.parametrize("example", EXAMPLES)
def test_an_example_can_be_used(example: str) -> None:
    """There is nothing to say against it where its variables are set."""
    names = ("SLACK_URL", "MAIL_URL", "TEAMS_URL", "NTFY_URL")
    env = {**dict.fromkeys(names, "json://localhost/a"), "WEBHOOK_SECRET": KEY}

    assert findings(GOOD + example, around(env=env)) == []


async def test_the_receiver_of_the_page_takes_what_is_signed_rightly() -> None:
    """It prints what it was told, and refuses what another secret has signed."""
    port = free_port()
    env = {"WEBHOOK_SECRET": KEY, "PORT": str(port)}
    program = [sys.executable, "-c", RECEIVER]
    hook = target(webhook=f"http://127.0.0.1:{port}/")
    forged = target(webhook=f"http://127.0.0.1:{port}/", secret="whsec_" + "A" * 32)
    with subprocess.Popen(program, env=env, stdout=subprocess.PIPE) as receiver:
        try:
            with trio.fail_after(60):
                while True:
                    try:
                        async with open_webhook(hook, "team", time.time) as channel:
                            await channel.send([outgoing()])
                        break
                    except SendFailed:  # it is not there yet
                        await trio.sleep(0.05)
                with pytest.raises(SendFailed):
                    async with open_webhook(forged, "team", time.time) as channel:
                        await channel.send([outgoing("held:2")])
        finally:
            receiver.kill()
        assert receiver.stdout is not None
        assert receiver.stdout.read().decode() == "held T-1: held:1\n"
