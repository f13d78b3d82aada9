"""A hook or an agent that notes, before it does its work, what must never be.

It locks its issue and one of the slots. What it starts inherits the locks, whatever session it is
in, so they are held until the last process of the run is gone, however that one ends.

As an agent it is the Kiro simulator: ``witness.py ROOT SLOTS agent ARGUMENTS...``. As a hook it
takes its time: ``witness.py ROOT SLOTS NAME SECONDS``.
"""

import fcntl
import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

LOG = "witness.jsonl"
LOCKS = "locks"
WORK = "work"
"""In a workspace: the runs whose agents have worked there, one a line."""

MADE = ".made"
"""What after_create leaves in a workspace when it has finished."""

ACTIVE = ("Todo", "In Progress")


class Witness:
    """What one program of a run sees."""

    def __init__(self, root: Path, program: str) -> None:
        self._root = root
        self.issue = os.environ["SORTIE_ISSUE_ID"]
        self.run_id = os.environ["SORTIE_RUN_ID"]
        self._about = {
            "program": program,
            "issue": self.issue,
            "run_id": self.run_id,
            "attempt": int(os.environ["SORTIE_ATTEMPT"]),
            "pid": os.getpid(),
        }
        (root / LOCKS).mkdir(exist_ok=True)

    def write(self, event: str, **more: object) -> None:
        """Append a line in one write, so that those of several programs do not mix."""
        line = {"event": event, **self._about, "time": time.time(), **more}
        fd = os.open(self._root / LOG, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
        try:
            os.write(fd, (json.dumps(line) + "\n").encode())
        finally:
            os.close(fd)

    def lock(self, name: str) -> bool:
        """Take a lock that is never given back, unless somebody has it."""
        fd = os.open(self._root / LOCKS / name, os.O_RDWR | os.O_CREAT, 0o644)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(fd)
            return False
        os.set_inheritable(fd, True)
        return True

    def wait(self) -> None:
        """Work, with somebody in a session of its own, as long as the issue is told to wait."""
        waits = self._root / LOCKS / f"wait-{self.issue}"
        if waits.exists():
            subprocess.Popen(["sleep", "1000"], start_new_session=True, close_fds=False)
        while waits.exists():
            time.sleep(0.02)

    def state(self) -> str | None:
        """Return the state of the issue; None where its tracker is no directory."""
        path = self._root / "issues" / f"{self.issue}.md"
        if not path.exists():
            return None
        for line in path.read_text().splitlines():
            if line.startswith("state:"):
                return line.removeprefix("state:").strip().strip("\"'")
        return ""

    def dwellers(self) -> list[str]:
        """Return who else has this directory, or one below it, as working directory."""
        here = os.getcwd()
        found = []
        # A namespace's init is here for the moment in which it executes the program.
        known = {os.getpid(), 1} if _in_a_namespace() else {os.getpid()}
        for entry in Path("/proc").iterdir():
            try:
                cwd = os.readlink(entry / "cwd") if entry.name.isdigit() else ""
                if cwd and int(entry.name) not in known and f"{cwd}/".startswith(f"{here}/"):
                    command = (entry / "cmdline").read_bytes().replace(b"\0", b" ")
                    found.append(f"{entry.name} {command.decode(errors='replace').strip()}")
            except OSError:
                continue  # it is gone, or another user's
        return found

    def earlier(self) -> list[int]:
        """Return the pids of what was started in earlier runs of this issue and is alive.

        In a PID namespace of its own the program sees nobody else; its locks tell of them.
        """
        import psutil

        if _in_a_namespace():
            return []

        born: dict[int, float] = {}
        runs = set()
        for line in _lines(self._root / LOG):
            if line["issue"] == self.issue and line["run_id"] != self.run_id:
                runs.add(line["run_id"])
                born[line["pid"]] = line["time"]
        for line in _lines(self._root / "agents.jsonl"):
            if line["run_id"] in runs and "child_pid" in line:
                born[line["child_pid"]] = line["time"]
        alive = []
        for process in psutil.process_iter(["create_time", "status"]):
            info = process.info
            if process.pid not in born or process.pid == os.getpid():
                continue
            # psutil knows a start to a second or so; a later process may have the pid by now.
            known = info["create_time"] <= born[process.pid] + 2.0
            if known and info["status"] != psutil.STATUS_ZOMBIE:
                alive.append(process.pid)
        return alive


INITS = ("sortie-init", "bwrap", "sleep")
"""What is process 1 in PID namespaces: here, behind bubblewrap, and on hosts."""

IDLE = b"sleep 2147483647"
"""What that one on hosts is about to become, while it is a shell or env still."""


def _in_a_namespace() -> bool:
    init = Path("/proc/1")
    is_idle = IDLE in (init / "cmdline").read_bytes().replace(b"\0", b" ")
    return is_idle or (init / "comm").read_text().strip() in INITS


def _lines(path: Path) -> list[dict[str, Any]]:
    """Return the whole lines of a file that may just be written to."""
    whole = path.read_text().rpartition("\n")[0] if path.exists() else ""
    return [json.loads(line) for line in whole.splitlines()]


def look(witness: Witness, program: str, slots: int) -> None:
    """Note what is wrong here and now."""
    if not witness.lock(f"issue-{witness.issue}"):
        witness.write("trouble", what="two at once", alive=witness.earlier())
    if program == "before_remove":
        return  # it belongs to no run
    if not any(witness.lock(f"slot-{number}") for number in range(slots)):
        witness.write("trouble", what="beyond the limit")
    if program == "after_run":
        return  # the issue may be done
    if dwellers := witness.dwellers():
        witness.write("trouble", what=f"somebody lives in its workspace: {dwellers}")
    state = witness.state()
    if state is not None and state not in ACTIVE:
        witness.write("trouble", what=f"a run of an issue that is {state}")
    if program != "after_create" and not Path(MADE).exists():
        witness.write("trouble", what="a workspace that was not finished")


def agent(witness: Witness, arguments: list[str]) -> None:
    """Be the simulator; a turn also notes what earlier runs have left."""
    if arguments[0] == "chat":
        with Path(WORK).open("a") as work:
            work.write(f"{witness.run_id}\n")
        earlier = witness.earlier()
        witness.write("turn", earlier=earlier)
        if earlier:
            witness.write("trouble", what=f"earlier processes are alive: {earlier}")
        witness.wait()
    from sortie.kiro.simulator import main as simulate

    sys.argv[1:] = arguments
    simulate()


def hook(witness: Witness, name: str, seconds: float) -> None:
    """Take some time; after_create begins in a fresh directory and finishes it."""
    if name == "after_create" and (found := set(os.listdir()) - {".sortie"}):
        witness.write("trouble", what=f"a new workspace that holds {sorted(found)}")
    time.sleep(seconds)
    if name == "after_create":
        Path(MADE).touch()


def main(root: str, slots: str, program: str, *arguments: str) -> None:
    """Look round, then work."""
    witness = Witness(Path(root), program)
    witness.write("start")
    look(witness, program, int(slots))
    if program == "agent":
        agent(witness, list(arguments))
    else:
        hook(witness, program, float(arguments[0]))


if __name__ == "__main__":
    main(*sys.argv[1:])
