"""Runs command lines, each as a process of its own, and says how they ended.

On stdin is a list of jobs as JSON: what stdout is, what stderr is, the arguments.
A stream is ``pipe`` (its reader has gone), ``full`` (a device), ``closed`` or ``file``.
What is printed is a list of exit codes and what was written to stderr.
The processes are forks of this one, which saves each of them the start of the interpreter and the
loading of what commands load when they run; and they leave without taking it all apart again.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
import tempfile

from sortie.cli import main

LOADED = (
    "rich.table",
    "sortie.cli.demo.directory",
    "sortie.cli.demo.report",
    "sortie.cli.errors",
    "sortie.cli.status_view",
    "sortie.cli.streams",
    "sortie.daemon.process",
    "sortie.daemon.dry_run",
    "sortie.store.readonly",
    "sortie.trackers.file",
    "sortie.agents.kiro",
    "sortie.workflow",
)
FLUSH_FAILED = 120


def become(descriptor: int, kind: str, file: str) -> None:
    """Make one of the standard descriptors what was asked for."""
    match kind:
        case "pipe":
            read, write = os.pipe()
            os.close(read)
            os.dup2(write, descriptor)
        case "full":
            os.dup2(os.open("/dev/full", os.O_WRONLY), descriptor)
        case "closed":
            os.close(descriptor)
            setattr(sys, ("stdin", "stdout", "stderr")[descriptor], None)
        case _:
            os.dup2(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), descriptor)


def run(arguments: list[str]) -> int:
    """Run a command line as the installed program does, up to the interpreter's last flush."""
    sys.argv = ["sortie", *arguments]
    code: object = None
    try:
        main()
    except SystemExit as exit_:
        code = exit_.code
    for stream in (sys.stdout, sys.stderr, sys.__stdout__, sys.__stderr__):
        try:
            if stream is not None:
                stream.flush()
        except Exception:
            return FLUSH_FAILED
    assert isinstance(code, int)
    return code


def run_all() -> None:
    """Run what stdin lists."""
    jobs = json.load(sys.stdin)
    for name in LOADED:
        importlib.import_module(name)
    with tempfile.TemporaryDirectory() as directory:
        told = os.path.join(directory, "err")
        print(json.dumps([run_one(told, *job) for job in jobs]))


def run_one(told: str, out: str, err: str, arguments: list[str]) -> tuple[int, str]:
    """Run one command line in a fork; ``told`` is the file that a stderr of its own is."""
    with open(told, "w"):
        pass
    child = os.fork()
    if child == 0:
        become(1, out, os.devnull)
        become(2, err, told)
        os._exit(run(arguments))
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    with open(told, encoding="utf-8") as file:
        return code, file.read()


if __name__ == "__main__":
    run_all()
