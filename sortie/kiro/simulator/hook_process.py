"""Run the command of a hook, for as long as it may take."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Mapping
from contextlib import suppress
from tempfile import TemporaryFile
from typing import IO

from sortie.kiro.simulator.hooks import Hook


def run_hook(
    hook: Hook, told: Mapping[str, object], directory: str, environment: Mapping[str, str]
) -> tuple[int | None, str, str]:
    """Run a command with JSON on its stdin; return its exit status, stdout and stderr.

    The status is None where it took too long and was killed with all of its group. Files stand
    for pipes: a command that leaves a process behind holds nobody up, and one that does not read
    its stdin kills nobody by SIGPIPE.
    """
    with TemporaryFile() as given, TemporaryFile() as out, TemporaryFile() as err:
        given.write(json.dumps(told).encode())
        given.seek(0)
        process = subprocess.Popen(
            ["bash", "-c", hook.command],
            cwd=directory,
            env=dict(environment),
            stdin=given,
            stdout=out,
            stderr=err,
            start_new_session=True,
        )
        status: int | None = None
        try:
            status = process.wait(timeout=hook.timeout)
        except subprocess.TimeoutExpired:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        return status, _text(out, hook.output_limit), _text(err, hook.output_limit)


def _text(file: IO[bytes], limit: int) -> str:
    file.seek(0)
    return file.read(limit).decode(errors="replace")
