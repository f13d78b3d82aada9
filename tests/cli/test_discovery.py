"""How commands find a daemon, and what they say where there is none."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest
from msgspec.structs import replace

from sortie.daemon.locks import database_lock
from sortie.model import ProcessIdentity
from tests.cli.conftest import Cli
from tests.cli.fake_daemon import FakeDaemon, announce
from tests.cli.world import WORKFLOW, Ran

COMMANDS = ("status", "refresh", "pause", "resume", "stop A-1", "retry A-1", "explain A-1", "open")
PAUSED = Ran(code=0, out="dispatch is paused\n", err="")
NOT_VALID = "sortie: WORKFLOW.md is not valid as read here: "


@pytest.fixture(autouse=True)
def _answers(request: pytest.FixtureRequest) -> None:
    if "daemon" in request.fixturenames:
        daemon: FakeDaemon = request.getfixturevalue("daemon")
        daemon.answers["POST /api/v1/pause"] = (200, {"message": "dispatch is paused"})


def move(here: Path, to: str) -> None:
    """Put the daemon's word beside another database."""
    (here / to).parent.mkdir(exist_ok=True)
    os.rename(here / ".sortie.db.daemon", here / f"{to}.daemon")


@pytest.mark.parametrize("command", COMMANDS)
def test_no_daemon_is_one_line(cli: Cli, here: Path, command: str) -> None:
    """Without a daemon each command ends with 1 and says which database it looked at."""
    (here / "WORKFLOW.md").write_text(WORKFLOW)

    assert cli(*command.split()) == Ran(
        code=1,
        out="",
        err=f"sortie: no daemon runs for WORKFLOW.md (database {here}/.sortie.db); start one with"
        " 'sortie run'\n",
    )


@pytest.mark.parametrize("command", COMMANDS)
def test_a_daemon_that_is_not_there_yet_is_told(cli: Cli, here: Path, command: str) -> None:
    """One that holds the database and has not said how to reach it need not be started again."""
    (here / "WORKFLOW.md").write_text(WORKFLOW)
    with database_lock(f"{here}/.sortie.db") as lock:
        lock.ensure()

        ran = cli(*command.split())

    assert (ran.code, ran.err.count("\n")) == (1, 1)
    assert f"pid {os.getpid()}, since 2" in ran.err
    assert "cannot be reached yet: it first ends what an earlier one left" in ran.err


def test_the_hint_names_the_workflow(cli: Cli, here: Path) -> None:
    """The command that starts a daemon can be pasted, whatever the file is called."""
    (here / "my team").mkdir()
    (here / "my team" / "W.md").write_text(WORKFLOW)

    ran = cli("status", "--workflow", "my team/W.md")

    assert ran.err.endswith("start one with 'sortie run 'my team/W.md''\n")


def test_no_workflow_is_a_hint(cli: Cli) -> None:
    """Who is in the wrong directory is told so."""
    ran = cli("status")

    assert (ran.code, ran.err.count("\n")) == (1, 1)
    assert ran.err.startswith("sortie: there is no WORKFLOW.md; name the workflow file")


@pytest.mark.parametrize("command", COMMANDS)
def test_a_stale_file_is_told_and_its_token_kept(
    cli: Cli, here: Path, daemon: FakeDaemon, command: str
) -> None:
    """Whoever has the port of a daemon that was killed is sent nothing."""
    endpoint = daemon.endpoint()
    old = replace(endpoint.process, started_at=endpoint.process.started_at - 60)
    announce(here, replace(endpoint, process=old))

    assert cli(*command.split()) == Ran(
        code=1,
        out="",
        err=f"sortie: no daemon runs for WORKFLOW.md (database {here}/.sortie.db); the last one"
        f" (pid {os.getpid()}, since 2026-01-01 12:00:00Z) ended without taking its leave:"
        f" nobody holds {here}/.sortie.db.lock; start one with 'sortie run'\n",
    )
    assert daemon.asked == []


def test_a_daemon_that_holds_its_lock_is_there(cli: Cli, here: Path, daemon: FakeDaemon) -> None:
    """In a container of systemd its unit may have another boot id than the shell, so that its
    process is not known again; the lock is the same for both."""
    endpoint = daemon.endpoint()
    other_boot = replace(endpoint.process, started_at=endpoint.process.started_at + 2**35)
    announce(here, replace(endpoint, process=other_boot))

    with database_lock(str(here / ".sortie.db")) as lock:
        lock.ensure()
        ran = cli("status")

    assert daemon.asked, ran.err


def test_a_pid_that_nobody_has_is_stale(cli: Cli, here: Path, daemon: FakeDaemon) -> None:
    """A daemon that is gone, with nobody in its place, is told the same."""
    gone = ProcessIdentity(pid=2**22 + 1, started_at=1.0)
    announce(here, replace(daemon.endpoint(), process=gone))

    assert "ended without taking its leave" in cli("status").err
    assert daemon.asked == []


def test_a_daemon_on_another_machine_is_not_asked(cli: Cli, here: Path, daemon: FakeDaemon) -> None:
    """A directory that machines share may hold another one's file: its pid means nothing here."""
    announce(here, replace(daemon.endpoint(), host="elsewhere.example"))

    ran = cli("status")

    assert (ran.code, ran.err.count("\n")) == (1, 1)
    assert "is on the machine elsewhere.example, and can be asked only there" in ran.err
    assert daemon.asked == []


def test_a_daemon_without_a_port_is_told(cli: Cli, here: Path, daemon: FakeDaemon) -> None:
    """With server.port 0 there is a daemon, but nothing to ask it by."""
    announce(here, replace(daemon.endpoint(), url=None, token=None))

    ran = cli("pause")

    assert (ran.code, ran.out, ran.err.count("\n")) == (1, "", 1)
    assert "has no HTTP server, since server.port is 0; restart it with a port" in ran.err


def test_a_daemon_that_ended_this_moment_is_told(cli: Cli, here: Path, daemon: FakeDaemon) -> None:
    """A port at which nobody listens is one line."""
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        announce(here, replace(daemon.endpoint(), url=f"http://127.0.0.1:{sock.getsockname()[1]}/"))
        ran = cli("status")

    assert (ran.code, ran.out, ran.err.count("\n")) == (1, "", 1)
    assert "does not listen at http://127.0.0.1:" in ran.err


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_file_that_may_not_be_read_is_told(cli: Cli, here: Path, daemon: FakeDaemon) -> None:
    """Who may not read the file is told whose it is."""
    os.chmod(here / ".sortie.db.daemon", 0o000)

    assert "it belongs to user" in cli("status").err


@pytest.mark.parametrize(
    ("change", "unreadable"),
    [
        (lambda text: text.replace("kind: file", "kind: fiel"), False),
        (lambda text: text.replace("kind: file", "kind: [file"), True),
        (lambda text: text.replace("\n---\n", "\n"), True),
        (lambda text: "---\n- 1\n---\n", False),
        (lambda text: "", False),
        (lambda text: "\x00", True),
    ],
)
def test_a_broken_workflow_does_not_hide_the_daemon(
    cli: Cli, here: Path, daemon: FakeDaemon, change: object, unreadable: bool
) -> None:
    """One that cannot be read is told on stderr; what is wrong with settings the daemon tells."""
    assert callable(change)
    (here / "WORKFLOW.md").write_text(change(WORKFLOW))

    ran = cli("pause")

    assert (ran.code, ran.out) == (0, PAUSED.out)
    assert ran.err.startswith(NOT_VALID) == unreadable
    assert ran.err.count("\n") == int(unreadable)


def test_a_workflow_that_vanished_does_not_hide_the_daemon(
    cli: Cli, here: Path, daemon: FakeDaemon
) -> None:
    """While the file is away, the daemon that still runs is found by the default path."""
    (here / "WORKFLOW.md").unlink()

    ran = cli("pause")

    assert (ran.code, ran.out) == (0, PAUSED.out)
    assert ran.err == f"{NOT_VALID}WORKFLOW.md: there is no such file\n"


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("word", ["A-2", "elsewhere.md", "issues"])
def test_a_word_that_is_no_workflow_file_reaches_no_daemon(
    cli: Cli, here: Path, daemon: FakeDaemon, command: str, word: str
) -> None:
    """The daemon that happens to work here is not told to pause because of it."""
    (here / "issues").mkdir()

    ran = cli(*command.split(), word)

    assert (ran.code, ran.out, ran.err.count("\n")) == (1, "", 1)
    assert ran.err.startswith(f"sortie: {'there is no ' if word != 'issues' else ''}{word}")
    assert daemon.asked == []


def test_a_vanished_workflow_of_any_name_does_not_hide_its_daemon(
    cli: Cli, here: Path, daemon: FakeDaemon
) -> None:
    """The daemon says which file it is of."""
    announce(here, replace(daemon.endpoint(), workflow=str(here / "team.md")))

    ran = cli("pause", "team.md")

    assert (ran.code, ran.out) == (0, PAUSED.out)
    assert ran.err == "sortie: team.md is not valid as read here: team.md: there is no such file\n"


def test_the_database_is_the_one_of_a_valid_workflow(
    cli: Cli, here: Path, daemon: FakeDaemon
) -> None:
    """db_path, relative to the file, decides."""
    move(here, "data/s.db")
    (here / "WORKFLOW.md").write_text(WORKFLOW.replace("---\n", "---\ndb_path: data/s.db\n", 1))

    assert cli("pause") == PAUSED


@pytest.mark.parametrize("line", ["db_path: data/s.db", "db_path: $PLACE", 'db_path: "data/s.db"'])
@pytest.mark.parametrize("broken", ["tracker: [", "tracker: 7", "\tx: 1"])
def test_the_database_is_read_from_a_broken_workflow(
    cli: Cli,
    here: Path,
    daemon: FakeDaemon,
    monkeypatch: pytest.MonkeyPatch,
    line: str,
    broken: str,
) -> None:
    """What the front matter says of db_path counts, also where the rest is no YAML."""
    monkeypatch.setenv("PLACE", "data/s.db")
    move(here, "data/s.db")
    (here / "WORKFLOW.md").write_text(f"---\n{broken}\n{line}\n---\ndb_path: other.db\n")

    ran = cli("pause")

    assert (ran.code, ran.out) == (0, PAUSED.out)
    assert ran.err.startswith(NOT_VALID) == (broken != "tracker: 7")


@pytest.mark.parametrize("value", ["7", "[a]", "null", "$UNSET", "~nobody/x", "''"])
def test_a_useless_db_path_is_as_none(cli: Cli, here: Path, daemon: FakeDaemon, value: str) -> None:
    """A db_path that means nothing leaves the default."""
    (here / "WORKFLOW.md").write_text(f"---\ndb_path: {value}\ntracker: 7\n---\n")

    assert cli("pause").out == PAUSED.out


@pytest.mark.parametrize("valid", [True, False])
def test_overrides_beat_the_file(
    cli: Cli, here: Path, daemon: FakeDaemon, monkeypatch: pytest.MonkeyPatch, valid: bool
) -> None:
    """SORTIE_DB_PATH decides, in the environment before the env file, valid workflow or not."""
    move(here, "s.db")
    text = WORKFLOW.replace("---\n", "---\ndb_path: data/other.db\n", 1)
    (here / "WORKFLOW.md").write_text(text if valid else text.replace("kind: file", "kind: no"))
    (here / "env").write_text(f"SORTIE_DB_PATH={here}/s.db\n")
    (here / "wrong.env").write_text("SORTIE_DB_PATH=/nowhere/x.db\n")

    by_file = cli("pause", "--env-file", "env")
    monkeypatch.setenv("SORTIE_DB_PATH", f"{here}/s.db")
    by_environment = cli("pause", "--env-file", "wrong.env")

    assert [ran.out for ran in (by_file, by_environment)] == [PAUSED.out] * 2
