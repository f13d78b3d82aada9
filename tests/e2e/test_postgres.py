"""A daemon whose rows are on a PostgreSQL server: its commands, and a server that goes away."""

from __future__ import annotations

import json
import signal
from collections.abc import Callable, Iterator

import psutil
import pytest
import trio

from tests.e2e.conftest import Start
from tests.e2e.daemon import Daemon, run_command
from tests.e2e.place import Place
from tests.e2e.stubborn import in_short
from tests.store.postgres_server import PASSWORD, PostgresServer, postgres_running

WAIT_FOR_GO = "touch ../../waits; while [ ! -e ../../go ]; do sleep 0.05; done"


@pytest.fixture(scope="module")
def server() -> Iterator[PostgresServer]:
    """A server that the tests of this module may end."""
    with postgres_running(fsync="on") as running:
        yield running


@pytest.fixture
def schema(place: Place, server: PostgresServer) -> str:
    """The schema that the workflow of the place names."""
    name = server.schema()
    use(place, name)
    return name


def use(place: Place, schema: str, **blocks: object) -> None:
    """Have the place's rows on the server that the environment names."""
    store = {"url": "$SORTIE_STORE_URL", "schema": schema}
    place.write_workflow(store=store, **blocks)  # type: ignore[arg-type]


def whole_log(daemon: Daemon) -> str:
    """All that a daemon said."""
    return json.dumps(daemon.log) + "".join(daemon.strays)


async def test_a_run_is_recorded_on_the_server(
    place: Place, start: Start, server: PostgresServer, schema: str
) -> None:
    """There is no file of it; every command reads it there, and the password is nowhere."""
    place.add_issue("A", "credits=0.5")

    async with start(SORTIE_STORE_URL=server.url) as daemon:
        await daemon.line("issue.moved", issue="A", lifecycle="handoff")
        shown = json.dumps(await daemon.state())
        command_lines = [" ".join(psutil.Process(daemon.process.pid).cmdline())]
        command_lines += [
            " ".join(p.info["cmdline"] or ()) for p in psutil.process_iter(["cmdline"])
        ]
    history = await place.sortie("history", "--format", "json", SORTIE_STORE_URL=server.url)
    others = [
        await place.sortie(*command, SORTIE_STORE_URL=server.url)
        for command in (
            ("validate",),
            ("stats",),
            ("logs", "A"),
            ("explain", "A"),
            ("plan",),
            ("doctor",),
        )
    ]

    assert [row["status"] for row in json.loads(history.out)] == ["succeeded"]
    assert [ran.code for ran in others[:5]] == [0, 0, 0, 0, 0]
    assert "0.5" in others[1].out
    assert not (place.root / ".sortie.db").exists()
    assert server.ask(f"SELECT count(*) FROM {schema}.runs") == [(1,)]
    (agent,) = place.agents()
    for text in (
        whole_log(daemon),
        shown,
        *command_lines,
        json.dumps(agent),
        *(ran.out + ran.err for ran in (history, *others)),
    ):
        assert PASSWORD not in text


async def test_what_a_command_says_without_a_server(
    place: Place, server: PostgresServer, schema: str
) -> None:
    """Each says that the server cannot be reached, with its place and without the password."""
    url = server.url.replace(str(server.port), "1")

    for command in (("run", "--port", "0"), ("history",), ("stats",), ("doctor",)):
        ran = await place.sortie(*command, SORTIE_STORE_URL=url)
        assert ran.code != 0
        assert "sortie on 127.0.0.1:1, schema" in ran.out + ran.err
        assert "cannot be reached" in ran.out + ran.err
        assert PASSWORD not in ran.out + ran.err
        assert "Traceback" not in ran.out + ran.err


@pytest.mark.parametrize(
    "strike", [PostgresServer.kill, PostgresServer.stop], ids=["killed", "stopped"]
)
async def test_what_runs_goes_on_while_the_server_is_away(
    place: Place,
    start: Start,
    server: PostgresServer,
    schema: str,
    strike: Callable[[PostgresServer], None],
) -> None:
    """Nothing is started until it is back; then everything is recorded, once."""
    use(place, schema, hooks={"after_run": WAIT_FOR_GO}, agent={"max_concurrent_agents": 5})
    place.write_text(
        place.workflow.read_text().replace('"store": {', '"store": {"lease_ms": 600000,')
    )
    place.add_issue("A")

    async with start(SORTIE_STORE_URL=server.url) as daemon:
        await place.until_there("waits")
        strike(server)
        try:
            place.add_issue("B")
            await daemon.line("poll.skipped")
            (place.root / "go").touch()
            failure = await daemon.line("store.failed")
            await daemon.ready(503, "cannot be reached")
            begun = daemon.lines("run.started", issue="B")
        finally:
            server.start()  # it would end with a thread of its own
        await daemon.line("store.recovered")
        for issue in ("A", "B"):
            await daemon.line("issue.moved", issue=issue, lifecycle="handoff")
        agents = place.agents()
        log = whole_log(daemon)
    rows = json.loads(
        (await place.sortie("history", "--format", "json", SORTIE_STORE_URL=server.url)).out
    )

    assert "cannot be reached" in failure["error"]
    assert begun == []
    assert len(agents) == 2
    assert sorted((row["issue"], row["status"]) for row in rows) == [
        ("A", "succeeded"),
        ("B", "succeeded"),
    ]
    assert PASSWORD not in log


async def test_a_killed_daemon_goes_on_from_the_server(
    place: Place, start: Start, server: PostgresServer, schema: str
) -> None:
    """The run is interrupted, ended and begun again, as with a file."""
    place.add_issue("A", "hang=1")

    async with start(SORTIE_STORE_URL=server.url) as daemon:
        await daemon.line("turn.started", issue="A")
        daemon.signal(signal.SIGKILL)
        await daemon.exit_code()
    place.add_issue("A")
    async with start(SORTIE_STORE_URL=server.url) as daemon:
        await daemon.line("issue.moved", issue="A", lifecycle="handoff")
    rows = json.loads(
        (await place.sortie("history", "--format", "json", SORTIE_STORE_URL=server.url)).out
    )[::-1]

    assert in_short(rows) == [(0, "interrupted"), (0, "succeeded")]


async def test_a_second_daemon_of_a_schema_stands_by(
    place: Place, start: Start, nursery: trio.Nursery, server: PostgresServer, schema: str
) -> None:
    """Also from another directory; it leads as soon as the first one has ended."""
    root = place.root / "other"
    root.mkdir()
    other = Place(root)
    use(other, schema)
    second = Daemon(other, nursery, run_command(port=0), 0)
    second.environ = {"SORTIE_STORE_URL": server.url}

    async with start(SORTIE_STORE_URL=server.url) as first:
        await first.line("daemon.started")
        async with second:
            waiting = await second.line("lease.waiting")
            before = second.lines("lease.acquired")
            first.signal(signal.SIGTERM)
            await second.line("daemon.started")
            acquired = second.lines("lease.acquired")
    assert waiting["leader"].endswith(f":{first.process.pid}")
    assert before == []
    assert [line.get("former") for line in acquired] == [None]


async def test_a_standby_ends_when_it_is_asked_to(
    place: Place, start: Start, nursery: trio.Nursery, server: PostgresServer, schema: str
) -> None:
    """It has nothing to end, so it ends at once, with success."""
    root = place.root / "other"
    root.mkdir()
    other = Place(root)
    use(other, schema)
    second = Daemon(other, nursery, run_command(port=0), 0)
    second.environ = {"SORTIE_STORE_URL": server.url}

    async with start(SORTIE_STORE_URL=server.url) as first:
        await first.line("daemon.started")
        async with second:
            await second.line("lease.waiting")
        code = second.process.returncode

    assert code == 0


async def test_the_doctor_looks_at_the_server(
    place: Place, server: PostgresServer, schema: str
) -> None:
    """Its version, rights and clock; a wrong password and a user without rights are failures."""
    login = f"u_{server.schema()}"
    server.ask(f"CREATE ROLE {login} LOGIN PASSWORD '{PASSWORD}'")
    found = {
        who: await _checks(place, url)
        for who, url in {
            "owner": server.url,
            "stranger": server.url.replace("//sortie", f"//{login}"),
            "nobody": server.url.replace(PASSWORD, "wrong-password"),
        }.items()
    }

    assert [found["owner"][name][0] for name in ("server", "rights", "clock")] == ["ok"] * 3
    assert "PostgreSQL" in found["owner"]["server"][1]
    assert found["stranger"]["rights"] == (
        "failed",
        f"there is no schema {schema}, and the user {login} may not make one",
    )
    assert found["nobody"]["server"][0] == "failed"
    assert "password authentication failed" in found["nobody"]["server"][1]
    assert found["nobody"]["rights"][0] == "skipped"


async def test_rows_move_to_a_server_and_back(
    place: Place, start: Start, server: PostgresServer
) -> None:
    """A daemon goes on there with what it has recorded; while one runs nothing is moved."""
    schema = server.schema()
    copy = ("store", "copy", "--format", "json", "--to")
    place.add_issue("A")
    async with start() as daemon:
        await daemon.line("issue.moved", issue="A", lifecycle="handoff")
    not_named = await place.sortie(*copy, "server")
    use(place, schema)
    there = await place.sortie(*copy, "server", SORTIE_STORE_URL=server.url)
    again = await place.sortie(*copy, "server", SORTIE_STORE_URL=server.url)
    place.add_issue("B")
    async with start(SORTIE_STORE_URL=server.url) as daemon:
        await daemon.line("issue.moved", issue="B", lifecycle="handoff")
        meanwhile = [
            await place.sortie(*command, SORTIE_STORE_URL=server.url)
            for command in ((*copy, "file"), ("store", "purge", "A"))
        ]
    (place.root / ".sortie.db").unlink()
    back = await place.sortie(*copy, "file", SORTIE_STORE_URL=server.url)
    purged = await place.sortie("store", "purge", "A", SORTIE_STORE_URL=server.url)
    exported = await place.sortie("export", SORTIE_STORE_URL=server.url)
    place.write_workflow()
    rows = await place.history()

    assert (not_named.code, there.code, again.code, back.code, purged.code) == (1, 0, 1, 0, 0)
    assert "store.url is not set" in not_named.err
    assert json.loads(there.out)["rows"]["runs"] == 1
    assert "it has rows already" in again.err
    for ran in meanwhile:
        assert ran.code == 1
        assert "stop the daemon first" in ran.err
    assert [row["issue"] for row in rows] == ["A", "B"]
    lines = [json.loads(line) for line in exported.out.splitlines()]
    assert [(line["type"], line.get("issue")) for line in lines] == [("run", "B"), ("day", None)]
    assert len(list((place.root / ".sortie.db.transcripts").glob("*.gz"))) == 1


async def _checks(place: Place, url: str) -> dict[str, tuple[str, str]]:
    ran = await place.sortie("doctor", "--format", "json", SORTIE_STORE_URL=url)
    assert PASSWORD not in ran.out + ran.err
    return {
        check["check"].removeprefix("store."): (check["outcome"], check["message"])
        for check in json.loads(ran.out)["checks"]
        if check["check"].startswith("store.")
    }
