"""``sortie status``."""

from __future__ import annotations

import json
import os
import re
import signal
from collections.abc import Callable
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from sortie.cli.arguments import Source
from sortie.cli.discovery import DaemonPlace
from sortie.cli.output import Format
from sortie.cli.status import INTERVAL, fitting, follow, follow_several, pausing
from sortie.web.state import to_json
from tests.cli.conftest import Cli
from tests.cli.fake_daemon import READY, STATE, FakeDaemon, announce
from tests.cli.world import Ran
from tests.web.leases import GONE, HERE, LEASE

RUNNING = {
    "issue_id": "1",
    "issue_identifier": "DEMO-1",
    "issue_url": None,
    "title": "Mend the fence",
    "state": "In Progress",
    "run_id": "r-1",
    "session_id": None,
    "attempt": 2,
    "turn": 3,
    "max_turns": 20,
    "phase": "turn",
    "host": "local",
    "workspace": "/w/DEMO-1",
    "started_at": "2026-01-01T10:57:30.000000Z",
    "last_event_at": "2026-01-01T12:00:00.000000Z",
    "last_message": "I look\nat [red]\x1b[31mit",
    "credits": None,
    "tokens": None,
}
STARTING = RUNNING | {"issue_identifier": "DEMO-2", "turn": None, "last_message": None}
WAITING = {
    "issue_id": "4",
    "issue_identifier": "DEMO-4",
    "kind": "retry",
    "attempt": 1,
    "due_at": "2026-01-01T12:00:42.000000Z",
    "reason": "after error",
}
DUE = WAITING | {
    "issue_identifier": "DEMO-5",
    "due_at": "2026-01-01T11:00:00.000000Z",
    "reason": "no available orchestrator slots",
}
HELD = {
    "issue_id": "3",
    "issue_identifier": "DEMO-3",
    "reason": "operator",
    "detail": "an operator stopped it",
    "since": "2025-12-30T10:30:00.000000Z",
}
BUSY = STATE | {
    "status": "paused",
    "workflow": {
        "path": "/p/WORKFLOW.md",
        "valid": False,
        "errors": ["WORKFLOW.md:3:9: tracker.kind: needs a known kind"],
    },
    "counts": {"running": 2, "waiting": 2, "held": 1},
    "running": [RUNNING | {"reaction": ["checks", "review"]}, STARTING],
    "waiting": [WAITING, DUE],
    "held": [HELD],
    "slots": {"total": 10, "free": 8, "by_state": {"todo": 1}, "by_host": {}},
    "totals": {"runs": 4, "turns": 9, "credits": 0.75, "tokens": 70, "seconds_running": 3661.5},
}
NOT_READY = (503, {"status": "not ready", "reasons": ["the last poll failed: no \x1b[2Janswer"]})

QUIET = """\
status    running, ready
workflow  /p/WORKFLOW.md, valid
issues    0 running, 0 waiting, 0 held, 0 queued, 0 blocked
slots     10 of 10 free
totals    0 runs, 0 turns, 0s running
daemon    since 2026-01-01 12:00:00Z (0s), version {version}, pid {pid}, {url}
seen      2026-01-01 12:00:00Z
"""
SCREEN = """\
status    paused, NOT READY; no run is started until 'sortie resume'
          the last poll failed: no \\x1b[2Janswer
workflow  /p/WORKFLOW.md, NOT VALID; the last good settings stay in force
          WORKFLOW.md:3:9: tracker.kind: needs a known kind
issues    2 running, 2 waiting, 1 held, 0 queued, 0 blocked
slots     8 of 10 free
          todo: 1 free
totals    4 runs, 9 turns, 0.75 credits, 70 tokens, 1h01m running
daemon    since 2026-01-01 12:00:00Z (0s), version {version}, pid {pid}, {url}
seen      2026-01-01 12:00:00Z

held
issue   reason    since                   for  detail
DEMO-3  operator  2025-12-30 10:30:00Z  2d01h  an operator stopped it
a hold ends with 'sortie retry ISSUE' or a change of the issue's state;
'sortie explain ISSUE' says what else can be done

running
issue   state        phase  turn  attempt  host     for  last message
DEMO-1  In Progress  turn   3/20        2  local  1h02m  I look at [red]\\x1b[31mit; answers \
checks, review; in /w/DEMO-1
DEMO-2  In Progress  turn               2  local  1h02m  in /w/DEMO-1

waiting
issue   kind   attempt     due  reason
DEMO-4  retry        1  in 42s  after error
DEMO-5  retry        1     now  no available orchestrator slots
"""


WATCHED = {
    "issue_id": "6",
    "issue_identifier": "DEMO-6",
    "stage": "needs_person",
    "number": 7,
    "pull_request": "https://forge.example/team/thing/pulls/7",
    "branch": "sortie/DEMO-6",
    "since": "2025-12-31T12:00:00.000000Z",
    "waits_for": "its issue is held: the agent was asked\ntwice \x1b[31mabout checks",
    "next_look_at": "2026-01-01T12:00:42.000000Z",
    "runs": {"checks": 2},
    "exhausted": "checks",
    "held": "reaction_exhausted",
}
IN_QUEUE = WATCHED | {
    "issue_identifier": "DEMO-7",
    "stage": "merging",
    "number": 11,
    "waits_for": "the forge merges it by itself",
    "next_look_at": None,
    "queued": True,
    "rule": "docs",
}
WATCH_SCREEN = """
pull requests
issue   number  stands               since      next look  waits for
DEMO-6  #7      needs a person       1d00h ago  in 42s     its issue is held: the agent was asked \
twice \\x1b[31mabout checks; https://forge.example/team/thing/pulls/7
DEMO-7  #11     the forge merges it  1d00h ago  now        the forge merges it by itself; \
https://forge.example/team/thing/pulls/7; rule docs
"""


class Terminal(StringIO):
    """A stdout that somebody looks at."""

    def isatty(self) -> bool:
        return True


class Enough(Exception):
    """The end of a test that would go on for ever."""


def expected(template: str, daemon: FakeDaemon) -> str:
    endpoint = daemon.endpoint()
    return template.format(version=endpoint.version, pid=endpoint.process.pid, url=daemon.url)


def pauses(*steps: Callable[[], object]) -> Callable[[float], None]:
    """Take a step in each pause of the watch, and end it in the one after the last."""
    left = iter(steps)

    def pause(seconds: float) -> None:
        assert seconds == INTERVAL
        step = next(left, None)
        if step is None:
            raise Enough
        step()

    return pause


def watch(here: Path, output: Format, *steps: Callable[[], object]) -> None:
    place = DaemonPlace(source=Source(), db_path=os.fspath(here / ".sortie.db"))
    with pytest.raises(Enough):
        follow(place, output, pauses(*steps))


def test_a_quiet_daemon_is_seven_lines(cli: Cli, daemon: FakeDaemon) -> None:
    """Where nothing runs, waits or is held there are no tables."""
    daemon.show(STATE)

    assert cli("status") == Ran(code=0, out=expected(QUIET, daemon), err="")


def test_all_that_is_known_stands_on_one_screen(cli: Cli, daemon: FakeDaemon) -> None:
    """What is wrong comes first, then what is held, runs and waits; no text acts or is cut."""
    daemon.show(BUSY, NOT_READY)

    assert cli("status") == Ran(code=0, out=expected(SCREEN, daemon), err="")


def test_the_image_of_a_run_is_told(cli: Cli, daemon: FakeDaemon) -> None:
    """With the beginning of its digest."""
    image = {"image": "team/tools:7", "image_digest": f"sha256:{'c0ffee' * 10}beef"}
    daemon.show(STATE | {"running": [RUNNING | image]}, NOT_READY)

    assert "image team/tools:7, sha256:c0ffeec0ffee" in " ".join(cli("status").out.split())


FAILURE = {
    "kind": "turn_failed",
    "message": "it said no",
    "at": "2026-01-01T11:59:00.000000Z",
    "run_id": "r-0",
}
KEPT = {"issue_id": "7", "issue_identifier": "DEMO-7", "state": "Todo", "reason": "no slot"}
TROUBLED = STATE | {
    "counts": STATE["counts"] | {"held": 1, "queued": 9, "blocked": 1, "unreadable": 2},
    "running": [RUNNING | {"last_failure": FAILURE}, STARTING | {"attempt": 0}],
    "waiting": [WAITING | {"last_failure": FAILURE}],
    "held": [
        HELD | {"last_failure": FAILURE},
        HELD | {"issue_identifier": "DEMO-6", "detail": "it said no", "last_failure": FAILURE},
    ],
    "queued": [KEPT] * 5,
    "blocked": [KEPT | {"issue_identifier": "DEMO-8", "reason": "it is blocked by DEMO-7 (Todo)"}],
    "hosts": [
        {
            "host": "east",
            "up": True,
            "used": 1,
            "slots": 2,
            "since": None,
            "rests_until": None,
            "reason": None,
        },
        {
            "host": "west",
            "up": False,
            "used": 0,
            "slots": 2,
            "since": "2026-01-01T11:58:00.000000Z",
            "rests_until": "2026-01-01T12:00:09.000000Z",
            "reason": "west refused the key",
        },
        {
            "host": "north",
            "up": False,
            "used": 1,
            "slots": 2,
            "since": "2026-01-01T11:58:00.000000Z",
            "rests_until": "2026-01-01T11:59:09.000000Z",
            "reason": "no route",
        },
    ],
    "tracker": {
        "unreadable": ["X.md:3:1: no title"],
        "unnamed_states": [
            {"state": "To Do", "issues": 1, "first": "DEMO-9", "near": "Todo"},
            {"state": "Icebox", "issues": 3, "first": "DEMO-4", "near": None},
        ],
    },
}
TROUBLES = """\
issues    0 running, 0 waiting, 1 held, 9 queued, 1 blocked
tracker   DEMO-9 is in To Do, which no setting names; did you mean Todo?
          3 issues are in Icebox (DEMO-4 is one), which no setting names
          cannot be read: X.md:3:1: no title
          ... and 1 more that cannot be read
"""
TABLES = """\
held
issue   reason    since                   for  detail
DEMO-3  operator  2025-12-30 10:30:00Z  2d01h  an operator stopped it; last failure: turn_failed: it said no
DEMO-6  operator  2025-12-30 10:30:00Z  2d01h  it said no
a hold ends with 'sortie retry ISSUE' or a change of the issue's state;
'sortie explain ISSUE' says what else can be done

running
issue   state        phase  turn  attempt  host     for  last message
DEMO-1  In Progress  turn   3/20        2  local  1h02m  I look at [red]\\x1b[31mit; last failure: turn_failed: it said no; in /w/DEMO-1
DEMO-2  In Progress  turn               0  local  1h02m  in /w/DEMO-1

waiting
issue   kind   attempt     due  reason
DEMO-4  retry        1  in 42s  after error; last failure: turn_failed: it said no

queued
issue   state  reason
DEMO-7  Todo   no slot
DEMO-7  Todo   no slot
DEMO-7  Todo   no slot
... and 6 more

blocked
issue   state  reason
DEMO-8  Todo   it is blocked by DEMO-7 (Todo)

hosts
host   runs  is             reason
east    1/2  up
west    0/2  rested for 9s  west refused the key
north   1/2  tried again    no route
"""  # noqa: E501


def test_what_keeps_issues_from_running_is_on_the_screen(cli: Cli, daemon: FakeDaemon) -> None:
    """Last failures, what waits for room or a change, hosts in trouble, and what the tracker holds
    that nobody works on; a failure that the hold's own sentence tells is not told twice."""
    daemon.show(TROUBLED)

    ran = cli("status")

    assert TROUBLES in ran.out
    assert ran.out[ran.out.index("held\nissue") :] == TABLES


def test_a_daemon_of_the_version_before_is_understood(cli: Cli, daemon: FakeDaemon) -> None:
    """What an older daemon does not tell is left out."""
    daemon.show(STATE)

    assert cli("status").code == 0


def test_programs_get_the_document_and_the_readiness(cli: Cli, daemon: FakeDaemon) -> None:
    """JSON is what the API shows, with ready and reasons, also what this version cannot read."""
    daemon.show(BUSY | {"news": [1]}, NOT_READY)

    ran = cli("status", "--format", "json")

    assert (ran.code, ran.err) == (0, "")
    assert json.loads(ran.out) == BUSY | {
        "news": [1],
        "ready": False,
        "reasons": ["the last poll failed: no \x1b[2Janswer"],
    }


@pytest.mark.parametrize(
    ("ready", "word"),
    [
        (READY, "ready"),
        ((503, {"status": "stuck", "reasons": ["it is due for 70 s"]}), "NOT READY"),
        ((503, {"status": "stuck", "reasons": 7}), "NOT READY"),
        ((404, {}), "NOT READY"),
    ],
)
def test_readiness_is_the_probes(
    cli: Cli, daemon: FakeDaemon, ready: tuple[int, Any], word: str
) -> None:
    """Only a 200 of /readyz is ready."""
    daemon.show(STATE, ready)

    assert cli("status").out.startswith(f"status    running, {word}\n")


def test_a_draining_daemon_is_said_to_leave(cli: Cli, daemon: FakeDaemon) -> None:
    """While the daemon ends, its status explains itself."""
    daemon.show(STATE | {"status": "draining"})

    assert cli("status").out.startswith("status    draining, ready; it ends its runs and leaves\n")


def test_an_answer_of_another_version_is_one_line(cli: Cli, daemon: FakeDaemon) -> None:
    """What cannot be laid out for people is told, and is no traceback."""
    daemon.show(STATE | {"running": [{"issue": "X"}]})

    ran = cli("status")

    assert (ran.code, ran.out, ran.err.count("\n")) == (1, "", 1)
    assert "is not one of StateView of version" in ran.err


def test_a_watch_of_a_pipe_is_one_screen_after_another(
    here: Path, daemon: FakeDaemon, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each look is printed anew, with an empty line between."""
    daemon.show(STATE)

    watch(here, Format.TEXT, lambda: daemon.show(BUSY, NOT_READY))

    out, err = capsys.readouterr()
    assert out == f"{expected(QUIET, daemon)}\n{expected(SCREEN, daemon)}"
    assert err == ""


def test_a_watch_for_programs_is_one_object_a_line(
    here: Path, daemon: FakeDaemon, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each look is one compact line."""
    daemon.show(STATE)

    watch(here, Format.JSON, lambda: daemon.show(BUSY))

    lines = capsys.readouterr().out.splitlines()
    ready = {"ready": True, "reasons": []}
    assert [json.loads(line) for line in lines] == [STATE | ready, BUSY | ready]
    assert '": ' not in lines[0]


@pytest.mark.parametrize("output", list(Format))
def test_a_watch_survives_the_daemon(
    here: Path, daemon: FakeDaemon, capsys: pytest.CaptureFixture[str], output: Format
) -> None:
    """While the daemon is away that is told once, and its return is seen."""
    daemon.show(STATE)
    word = here / ".sortie.db.daemon"

    watch(
        here,
        output,
        word.unlink,
        lambda: None,
        lambda: announce(here, daemon.endpoint()),
        word.unlink,
    )

    out, err = capsys.readouterr()
    gone = (
        f"sortie: no daemon runs for WORKFLOW.md (database {here}/.sortie.db); start one with"
        " 'sortie run'; looking on\n"
    )
    assert err == gone * 2
    looks = out.split("\n\n") if output is Format.TEXT else out.splitlines()
    assert len(looks) == 2


def test_a_watch_survives_a_daemon_whose_token_is_new(
    here: Path, daemon: FakeDaemon, capsys: pytest.CaptureFixture[str]
) -> None:
    """One that is restarted this moment refuses the old one's token, and is seen again."""
    refusal = (401, {"error": {"code": "unauthorized", "message": "the token is wrong"}})
    daemon.show(STATE)

    watch(
        here,
        Format.TEXT,
        lambda: daemon.answers.update({"GET /api/v1/state": refusal}),
        lambda: daemon.show(STATE),
    )

    out, err = capsys.readouterr()
    assert len(out.split("\n\n")) == 2
    assert "the token is wrong" in err
    assert err.endswith("; looking on\n")
    assert err.count("\n") == 1


def test_a_watch_ends_where_looking_on_is_no_use(cli: Cli, here: Path, daemon: FakeDaemon) -> None:
    """A daemon that cannot be asked at all ends the watch with 1."""
    announce(here, replace(daemon.endpoint(), url=None, token=None))

    ran = cli("status", "--watch")

    assert (ran.code, ran.out, ran.err.count("\n")) == (1, "", 1)


def two_workflows(here: Path, daemon: FakeDaemon) -> dict[str, Source]:
    """Two workflows, of which one has a daemon."""
    sources = {}
    for name in ("api", "docs"):
        (here / name).mkdir()
        path = here / name / "WORKFLOW.md"
        path.write_text((here / "WORKFLOW.md").read_text())
        sources[name] = Source(argument=path)
    announce(here / "api", daemon.endpoint())
    return sources


def watch_several(sources: dict[str, Source], output: Format, *steps: Callable[[], object]) -> None:
    with pytest.raises(Enough):
        follow_several(sources, output, pauses(*steps))


def test_a_watch_of_several_workflows_shows_each(
    here: Path, daemon: FakeDaemon, capsys: pytest.CaptureFixture[str]
) -> None:
    """Again and again, also one that is away; another is shown as soon as it comes."""
    daemon.show(STATE)
    sources = two_workflows(here, daemon)

    watch_several(sources, Format.TEXT, lambda: announce(here / "docs", daemon.endpoint()))
    text = capsys.readouterr().out
    watch_several(sources, Format.JSON)
    (line,) = capsys.readouterr().out.splitlines()

    quiet = expected(QUIET, daemon)
    first, second = text.split("\n\nworkflow api\n")
    assert first.startswith(f"workflow api\n{quiet}\nworkflow docs\nno daemon runs for ")
    assert second == f"{quiet}\nworkflow docs\n{quiet}"
    document = json.loads(line)["workflows"]
    assert document["api"] == document["docs"] == STATE | {"ready": True, "reasons": []}


def test_all_workflows_have_room_on_a_terminal() -> None:
    """What is short is whole, and what is long shares the rest."""
    long, short = [f"l{n}" for n in range(40)], ["s0", "s1"]

    both = fitting([long, short], 12)
    three = fitting([long, short, long], 12)
    tiny = fitting([long, long, long], 2)

    assert both == [*long[:8], "... and 32 lines more", "", *short]
    cut = [*long[:3], "... and 37 lines more"]
    assert three == [*cut, "", *short, "", *cut]
    assert len(three) == 12
    assert tiny.count("... and 39 lines more") == 3
    assert fitting([long], 41) == long


def test_a_terminal_is_drawn_over(
    here: Path, daemon: FakeDaemon, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a terminal each look begins at the top, erases what was there, and fits in."""
    rows = [RUNNING | {"issue_identifier": f"DEMO-{n}"} for n in range(50)]
    daemon.show(BUSY | {"running": rows})
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("LINES", "24")
    terminal = Terminal()
    monkeypatch.setattr("sys.stdout", terminal)

    watch(here, Format.TEXT, (here / ".sortie.db.daemon").unlink)

    drawn = re.sub(r"\x1b\[[0-9;]*m", "", terminal.getvalue())  # without colours
    assert drawn.startswith("\x1b[?1049h")  # a screen of its own
    assert drawn.endswith("\x1b[?1049l")
    looks = [look for look in drawn.split("\x1b[H") if "\n" in look and look.strip()]
    first, second = looks[0], looks[-1]
    lines = first.splitlines()
    assert lines[0].startswith("status")
    assert len(lines) == 24
    assert lines[23].startswith("... and ")
    assert max(map(len, lines)) <= 80
    assert any(re.match(r"DEMO-0 +In Progress ", line) for line in lines)
    assert "no daemon runs for WORKFLOW.md" in second
    assert "looking on" in second


def test_a_change_of_size_ends_the_pause() -> None:
    """The screen is drawn anew at once; afterwards the process heeds signals as before."""
    before = signal.getsignal(signal.SIGWINCH), signal.set_wakeup_fd(-1)

    with pausing() as pause:
        os.kill(os.getpid(), signal.SIGWINCH)
        pause(3600)  # returns, or the test's time limit ends it
        during = signal.getsignal(signal.SIGWINCH)

    assert during != before[0]
    assert (signal.getsignal(signal.SIGWINCH), signal.set_wakeup_fd(-1)) == before


def test_the_leader_and_the_other_daemons_are_shown(cli: Cli, daemon: FakeDaemon) -> None:
    """Who leads, why it is handed over, and which daemon is gone."""
    lease = json.loads(to_json(LEASE))
    others = [json.loads(to_json(one)) for one in (HERE, GONE)]
    daemon.show(STATE | {"lease": lease, "daemons": others})

    lines = cli("status").out.splitlines()

    at = next(number for number, line in enumerate(lines) if line.startswith("leader"))
    assert lines[at : at + 2] == [
        "leader    east:71, token 7, since 2026-01-01T12:00:00Z; to be handed over"
        " once its runs have ended, as it is drained",
        "          west:<9> was last heard of at 2026-01-01T12:00:00Z",
    ]


def test_workspaces_that_are_kept_are_shown(cli: Cli, daemon: FakeDaemon) -> None:
    """Each with what would be lost and until when it stays, and below them what can be done."""
    where = {"host": "local", "path": "/w/DEMO-9", "reason": "2 unpushed commits"}
    kept = {
        "issue_id": "9",
        "issue_identifier": "DEMO-9",
        "workspaces": [where, where | {"host": "east"}],
        "next_look_at": "2026-01-01T13:00:00.000000Z",
        "until": "2026-01-15T12:00:00.000000Z",
    }
    daemon.show(STATE | {"kept": [kept]})

    shown = cli("status").out

    assert "/w/DEMO-9: 2 unpushed commits" in shown
    assert [line.split()[:2] for line in shown.splitlines() if line.startswith("DEMO-9")] == [
        ["DEMO-9", "local"],
        ["DEMO-9", "east"],
    ]
    assert "push what is in it, or remove the directory" in shown


def test_targets_of_notifications_are_shown_where_something_waits(
    cli: Cli, daemon: FakeDaemon
) -> None:
    """With since when, and why; one that was told of everything is not."""
    quiet = {"target": "mail", "waiting": 0, "oldest_at": None, "dead": 0, "error": None}
    kept = {"target": "chat", "waiting": 2, "oldest_at": "2026-01-01T11:00:00.000000Z"}
    down = {"target": "hook", "dead": 3, "error": "it answered 500"}
    daemon.show(
        STATE | {"notifications": [quiet, quiet | kept, quiet | kept | down]},
    )

    shown = cli("status").out

    assert "chat: 2 waiting, the oldest since 2026-01-01 11:00:00Z\n" in shown
    assert (
        "hook: 2 waiting, the oldest since 2026-01-01 11:00:00Z, 3 given up: it answered 500\n"
    ) in shown
    assert "mail" not in shown


def test_the_rule_of_an_issue_and_the_slots_of_a_rule_are_shown(
    cli: Cli, daemon: FakeDaemon
) -> None:
    """Whatever is listed names the rule that decides for it; each rule has a line."""
    share = {"rule": "docs", "used": 1, "guaranteed": 1, "limit": 2, "burst_to": 3}
    rule = {"rule": "docs"}
    daemon.show(
        STATE
        | {
            "running": [RUNNING | rule],
            "waiting": [WAITING | rule],
            "held": [HELD | rule],
            "queued": [KEPT | rule],
            "slots": STATE["slots"] | {"by_rule": [share]},
        }
    )

    shown = cli("status").out

    assert "rule docs: 1 of 2, 1 guaranteed, up to 3 while there is room\n" in shown
    assert shown.count("; rule docs") == 4


def test_what_awaits_review_is_shown(cli: Cli, daemon: FakeDaemon) -> None:
    """Issue, branch, lines and pull request, before what needs nobody; ten of them, and how many
    more there are; programs get all."""
    moved = {
        "issue_identifier": "DEMO-1",
        "title": "Mend",
        "state": "Review",
        "at": "2026-01-01T11:58:00.000000Z",
        "run_id": "r-1",
        "branch": "sortie/DEMO-1",
        "files_changed": 2,
        "added": 12,
        "removed": 3,
        "pull_request": "https://forge.example/team/thing/pulls/7",
    }
    nothing = dict.fromkeys(("run_id", "branch", "files_changed", "added", "removed"))
    bare = moved | nothing | {"issue_identifier": "DEMO-2", "pull_request": None}
    rest = [bare | {"issue_identifier": f"MORE-{number}"} for number in range(18)]
    daemon.show(BUSY | {"handed_off": [moved, bare, *rest], "watched": [WATCHED]})

    shown = cli("status").out
    names = ("held", "pull requests", "handed off", "running", "waiting")
    assert [name for name in shown.splitlines() if name in names] == list(names)
    lines = [line.split() for line in shown.splitlines()]

    assert ["DEMO-1", "Review", "2m00s", "ago", "+12", "-3"] in [line[:6] for line in lines]
    assert "https://forge.example/team/thing/pulls/7; branch sortie/DEMO-1" in shown
    assert ["DEMO-2", "Review", "2m00s", "ago"] in lines
    assert sum(line[0].startswith("MORE-") for line in lines if line) == 8
    assert "... and 10 more" in shown
    assert "'sortie diff ISSUE'" in shown
    document = json.loads(cli("status", "--format", "json").out)
    assert len(document["handed_off"]) == 20
    assert document["handed_off"][0] == moved


def test_watched_pull_requests_are_shown_and_counted(cli: Cli, daemon: FakeDaemon) -> None:
    """The first ones stand in a table, whose texts do nothing; with none there is no word of it."""
    daemon.show(STATE)
    quiet = cli("status").out
    daemon.show(
        STATE
        | {
            "counts": STATE["counts"] | {"watched": 30},
            "watched": [WATCHED, *[IN_QUEUE] * 29],
        }
    )
    shown = cli("status").out

    assert "watched" not in quiet
    assert "pull request" not in quiet
    assert "0 blocked, 30 pull requests watched\n" in shown
    assert "... and 18 more\n" in shown
    assert WATCH_SCREEN in shown
    assert "each gate of a merge" in shown
