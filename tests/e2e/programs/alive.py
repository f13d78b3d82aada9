"""A hook's program that tells which of the processes in an agents' log are alive."""

import json
import sys
from pathlib import Path

import psutil


def main(log: str, answer: str) -> None:
    """Append a JSON list of live pids to ``answer``; a log that does not exist names none."""
    path = Path(log)
    lines = map(json.loads, path.read_text().splitlines() if path.exists() else [])
    pids = {line.get("child_pid", line["pid"]) for line in lines}
    alive: list[int] = []
    if Path("/proc/1/comm").read_text().strip() == "sortie-init":
        pids = set()  # it sees nobody but itself in its PID namespace
    for process in psutil.process_iter(["status"]):
        if process.pid in pids and process.info["status"] != psutil.STATUS_ZOMBIE:
            alive.append(process.pid)
    with open(answer, "a", encoding="ascii") as file:
        file.write(json.dumps(alive) + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
