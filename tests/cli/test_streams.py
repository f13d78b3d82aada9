"""Standard streams that are closed, full or missing, with Python's buffer and without it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import trio

from sortie.cli.commands import COMMANDS
from sortie.model import Spending
from sortie.scheduler.records import RecordNotification
from tests.cli.fake_daemon import STATE, FakeDaemon
from tests.cli.test_explain import DOCUMENT
from tests.cli.test_history import T, record
from tests.cli.world import FIVE_MISTAKES, SOURCE, WORKFLOW, is_ours, write_issue
from tests.notifications.rig import notice
from tests.store.records import a_delivery, an_issue, begin, delivery, end, spending
from tests.telemetry.samples import RUN
from tests.telemetry.transcripts.rig import Rig

pytestmark = pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")

NO_ROOM = "sortie: cannot write to standard output: No space left on device\n"

PRINTING = """
--help
--version
--show-completion bash
run --help
version
version --format json
run --dry-run
run --dry-run --format json
schema
validate broken.md
validate --format json
init {}.md
demo {}
import peer.md
render A
render A --format json
history
history --format json
mcp --help
notifications
notifications --dead --format json
logs A
logs A --format json
logs A --follow
status
status --format json
status --watch
status --watch --format json
diff A
diff A --format json
rescue list --workflow cloning.md --format json
explain A
explain A --format json
rules A
rules A --format json
plan
plan --format json
open
open --format json
refresh
pause
resume
stop A
retry A --format json
answer A 1
answer A 1 --format json
drain
drain --cancel --format json
notifications
notifications --format json
notifications send --all-dead
notifications send 7 --format json
doctor
doctor --format json
stats
stats --format json
export
store --help
help
help security
service install --user --dry-run WORKFLOW.md
"""
CODES = {"rnu": 2, "render": 2, "validate missing.md": 1, "history --limit 0": 2, "validate": 0}


@pytest.fixture(autouse=True)
def _world(here: Path, daemon: FakeDaemon) -> None:
    write_issue(here, "A")
    (here / "broken.md").write_text(FIVE_MISTAKES)
    (here / "peer.md").write_text("---\ncodex: {command: codex}\n---\nDo {{ issue.title }}\n")
    used = spending(RUN, Spending(credits=0.5))
    work = delivery(RUN, an_issue("A"), a_delivery(), "+ a line\n")
    told = RecordNotification(notification=notice("a"), targets=("slack",))
    record(here, (T, [begin(RUN, an_issue("A")), used, work, end(RUN), told]))
    text = WORKFLOW.replace("work\n", f"work\nrepository: {{url: {here}}}\n")
    (here / "cloning.md").write_text(text)
    (here / "work").mkdir()
    rig = Rig(here)
    rig.begin()
    rig.end()
    trio.run(rig.writer.page, RUN, 0, 1)
    daemon.show(STATE)
    daemon.answers["GET /api/v1/issues/A/explain"] = (200, DOCUMENT)
    link = {"path": "/sign-in?code=x", "expires_in": 120}
    daemon.answers["POST /api/v1/sign-in"] = (200, link)
    for path in (
        "refresh",
        "pause",
        "resume",
        "issues/A/stop",
        "issues/A/retry",
        "issues/A/answer",
    ):
        daemon.answers[f"POST /api/v1/{path}"] = (200, {"message": "done"})
    for path in ("send-dead", "7/send"):
        daemon.answers[f"POST /api/v1/notifications/{path}"] = (200, {"message": "done"})
    drained = {"daemon": "d", "status": "drained", "leads": [], "running": 0, "alone": []}
    for path in ("drain", "drain/cancel"):
        daemon.answers[f"POST /api/v1/{path}"] = (200, drained)


def lines(text: str) -> list[str]:
    return text.strip().splitlines()


def ends(*jobs: tuple[str, str, str]) -> list[tuple[int, str]]:
    """Run commands, given with their stdout and stderr; return code and stderr of each."""
    environment = {key: value for key, value in os.environ.items() if not is_ours(key)}
    done = subprocess.run(
        [sys.executable, "-m", "tests.cli.programs.output"],
        input=json.dumps([(out, err, command.split()) for out, err, command in jobs]),
        env=environment | {"PYTHONPATH": str(SOURCE)},
        stdout=subprocess.PIPE,
        text=True,
        timeout=100,
        check=True,
    )
    return [(code, told) for code, told in json.loads(done.stdout)]


def test_no_command_is_forgotten() -> None:
    """What is tried here is every command there is."""
    assert COMMANDS.keys() <= {line.split()[0] for line in lines(PRINTING)}


def test_output_that_goes_nowhere_is_1_and_at_most_one_line() -> None:
    """Every command ends with 1, silently where the reader has gone, else with one line."""
    expected = {"pipe": (1, ""), "full": (1, NO_ROOM)}
    jobs = [(out, "file", line.format(out)) for out in expected for line in lines(PRINTING)]

    found = dict(zip(jobs, ends(*jobs), strict=True))

    assert found == {job: expected[job[0]] for job in jobs}


def test_a_complaint_that_nobody_hears_changes_no_code() -> None:
    """Whatever stderr is, a command ends with the code that it would end with."""
    jobs = [("file", err, command) for err in ("pipe", "full", "closed") for command in CODES]

    codes = [code for code, _told in ends(*jobs)]

    assert codes == [*CODES.values()] * 3


def test_without_a_stdout_a_command_does_its_work(here: Path) -> None:
    """A process that was started without stdout has nobody to print to, and succeeds."""
    commands = ["version", "init made.md", "history", "status"]
    jobs = [("closed", err, command) for err in ("file", "closed") for command in commands]

    codes = [code for code, _told in ends(*jobs)]

    assert codes == [0, 0, 0, 0, 0, 1, 0, 0]  # the second time there is a made.md
    assert (here / "made.md").exists()


def test_no_file_of_ours_takes_the_place_of_a_missing_stream(here: Path) -> None:
    """Without standard streams their numbers are taken, so that no file is opened under them."""
    script = """
import os
from sortie.cli.streams import guarded_streams
with guarded_streams():
    found = [os.readlink(f"/proc/self/fd/{number}") for number in range(3)]
    with open("found", "w") as file:
        file.write(" ".join([*found, str(file.fileno() > 2)]))
"""

    subprocess.run(
        ["sh", "-c", 'exec "$0" -c "$1" <&- >&- 2>&-', sys.executable, script],
        env=os.environ | {"PYTHONPATH": str(SOURCE)},
        timeout=60,
        check=True,
    )

    assert (here / "found").read_text() == "/dev/null /dev/null /dev/null True"
