"""``sortie notifications``: what is listed, sent again and tried."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
import trio

from sortie.scheduler.records import RecordNotification
from sortie.store.outbox import Outbox, TryResult
from sortie.store.sqlite import open_store
from tests.cli.conftest import Cli
from tests.cli.fake_daemon import FakeDaemon
from tests.cli.test_history import T
from tests.cli.world import WORKFLOW
from tests.notifications.rig import KEY, notice
from tests.ports import free_port
from tests.trackers.server.exchange import Received, Reply
from tests.trackers.server.serving import serving


@pytest.fixture(autouse=True)
def _workflow(here: Path) -> None:
    (here / "WORKFLOW.md").write_text(WORKFLOW)


def with_targets(here: Path, text: str) -> None:
    written = WORKFLOW.replace("kiro:\n", f"notifications:\n{text}kiro:\n")
    (here / "WORKFLOW.md").write_text(written)


@pytest.fixture
def recorded(here: Path) -> None:
    """One that waits, one that is dead, and one that was sent."""

    async def record() -> None:
        async with open_store(str(here / ".sortie.db")) as store:
            for key in ("a", "b", "c"):
                told = RecordNotification(notification=notice(key), targets=("slack",))
                await store.commit([told], T)
            outbox = Outbox(store)
            _, b, c = await outbox.turn("slack", (), 3, None, T)
            results = [
                TryResult(id=1, state="waiting", tries=2, unsure=True, error="it is down"),
                TryResult(id=b.id, state="dead", tries=1, unsure=False, error="it answered 404"),
                TryResult(id=c.id, state="sent", tries=1, unsure=False),
            ]
            await outbox.turn("slack", results, 0, None, T + 60)

    trio.run(record)


@pytest.mark.usefixtures("recorded")
def test_it_lists_what_is_not_sent(cli: Cli) -> None:
    """With the state, the tries and the last error; what was sent is not there."""
    ran = cli("notifications")

    assert ran.code == 0
    assert [" ".join(line.split()) for line in ran.out.splitlines()] == [
        "id since state target tries what error",
        "1 2023-11-14 22:13:20Z waiting slack 2 T-1: a it is down",
        "2 2023-11-14 22:13:20Z dead slack 1 T-1: b it answered 404",
    ]


@pytest.mark.usefixtures("recorded")
def test_programs_get_all_of_it(cli: Cli) -> None:
    """Of those that were given up alone, where that is asked for."""
    (row,) = json.loads(cli("notifications", "--dead", "--format", "json").out)

    assert row == {
        "id": 2,
        "key": "b",
        "state": "dead",
        "target": "slack",
        "event": "held",
        "issue": "T-1",
        "title": "T-1: b",
        "created_at": "2023-11-14T22:13:20.000000Z",
        "tries": 1,
        "may_have_arrived": False,
        "error": "it answered 404",
        "given_up_at": "2023-11-14T22:14:20.000000Z",
    }


@pytest.mark.parametrize(
    ("arguments", "path"),
    [
        (("send", "7"), "/api/v1/notifications/7/send"),
        (("send", "--all-dead"), "/api/v1/notifications/send-dead"),
    ],
)
def test_the_daemon_sends_again(
    cli: Cli, daemon: FakeDaemon, arguments: tuple[str, ...], path: str
) -> None:
    """It is asked, and what it says is printed."""
    daemon.answers[f"POST {path}"] = (200, {"message": "1 notification sent again"})

    ran = cli("notifications", *arguments)

    assert (ran.code, ran.out) == (0, "1 notification sent again\n")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("send",), "send needs a number, or --all-dead"),
        (("send", "7", "--all-dead"), "send needs a number, or --all-dead"),
        (("send", "seven"), "needs the number of a notification"),
        (("list", "7"), "goes with send"),
        (("--all-dead",), "goes with send"),
        (("list", "--target", "slack"), "goes with test"),
    ],
)
def test_wrong_usage(cli: Cli, arguments: tuple[str, ...], said: str) -> None:
    """Each is said, and nothing is done."""
    ran = cli("notifications", *arguments)

    assert ran.code == 2
    assert said in ran.err


def test_a_test_tells_what_came_back(cli: Cli, here: Path) -> None:
    """Of each target by its name; the exit code is 1 where one could not be told."""
    received: list[Received] = []

    class Hook:
        """Takes everything."""

        def answer(self, request: Received) -> Reply:
            """See Service."""
            received.append(request)
            return Reply(status=204)

    with serving(Hook()) as server:
        with_targets(
            here,
            f"  - {{events: all, webhook: '{server.url}', secret: {KEY}}}\n"
            f"  - {{events: all, url: 'json://127.0.0.1:{free_port()}/t0ken-0123456789ab'}}\n",
        )
        ran, alone = cli("notifications", "test"), cli("notifications", "test", "--target=webhook")

    first, second = ran.out.splitlines()
    assert (ran.code, alone.code) == (1, 0)
    assert first == "webhook: ok: it answered 204"
    assert second.startswith("json: failed: A Connection error occurred")
    assert "t0ken" not in ran.out
    assert [request.json["type"] for request in received] == ["test", "test"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("test",), "names no target under notifications"),
        (("test", "--target", "x"), "no target has the name x; there are: none"),
    ],
)
def test_a_test_without_a_target(cli: Cli, arguments: tuple[str, ...], said: str) -> None:
    """It says that there is none."""
    ran = cli("notifications", *arguments)

    assert ran.code == 1
    assert said in ran.err


@pytest.fixture
def checked(here: Path, cli: Cli) -> Callable[[str], str]:
    """What ``sortie doctor`` says of targets."""

    def check(text: str) -> str:
        (here / "issues").mkdir(exist_ok=True)
        with_targets(here, text)
        lines = cli("doctor").out.splitlines()
        return "\n".join(line for line in lines if "notifications." in line)

    return check


@pytest.mark.parametrize(
    ("target", "outcome", "said"),
    [
        ("{events: all, url: 'json://localhost/a'}", "ok", "apprise understands the address"),
        ("{events: all, url: 'slack://wrong'}", "failed", "apprise does not understand"),
        (
            f"{{events: all, webhook: 'http://localhost:1/', secret: {KEY}}}",
            "ok",
            "the server localhost is known",
        ),
        (
            f"{{events: all, webhook: 'http://192.0.2.1/', secret: {KEY}}}",
            "warning",
            "can be read on the way",
        ),
    ],
)
def test_the_doctor_sends_nothing(
    checked: Callable[[str], str], target: str, outcome: str, said: str
) -> None:
    """It looks at addresses alone."""
    found = checked(f"  - {target}\n")

    assert found.startswith(outcome)
    assert said in found
