"""A disk that takes no more fails a write, and spoils nothing that was written."""

from __future__ import annotations

import resource
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from trio.testing import MockClock

from sortie.telemetry import facts
from sortie.telemetry.transcripts import Kind, read_page
from tests.store.processes import ROOT
from tests.telemetry.samples import RUN
from tests.telemetry.transcripts.rig import Rig

MOUNT = 'mount -t tmpfs -o size=2m sortie-test "$0" && exec "$@"'

NEARLY_FULL = """
import sys
from pathlib import Path
import trio
from tests.telemetry.transcripts.rig import Rig

disk = Path(sys.argv[1])
rig, ballast = Rig(disk), disk / "ballast"

async def main():
    rig.begin()
    ballast.write_bytes(bytes(2_040_000))
    await rig.writer._write(None)
    print(rig.writer.error, list(rig.path.iterdir()))
    ballast.unlink()
    await rig.writer._write(None)
    print(rig.writer.error, len(rig.lines()))

trio.run(main)
"""


@contextmanager
def files_no_larger_than(size: int) -> Iterator[None]:
    """Let no file of this process grow beyond a size."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


async def test_half_a_write_is_undone_and_made_again(at_once: MockClock, tmp_path: Path) -> None:
    """What was written before can be read meanwhile, and afterwards nothing is missing."""
    rig = Rig(tmp_path)
    rig.begin()
    rig.say("one")
    await rig.writer.page(RUN, 0, 1)
    size = rig.file().stat().st_size
    rig.say("\n".join(str(number) for number in range(1000)))
    with files_no_larger_than(size + 100):
        await rig.writer.page(RUN, 0, 1)
        error, during = rig.writer.error, read_page(str(rig.path), RUN, 0, 10)
        left = rig.file().stat().st_size
    rig.end()
    await rig.writer.page(RUN, 0, 1)

    assert error == "File too large"
    assert (left, len(during.lines), during.damage) == (size, 2, None)
    assert rig.texts(Kind.OUTPUT) == ["one", *(str(number) for number in range(1000))]
    assert rig.texts(Kind.GAP) == []
    assert [type(fact) for fact in rig.told] == [
        facts.TranscriptsFailed,
        facts.TranscriptsRecovered,
    ]


def test_the_last_of_a_disk_is_left_to_others(tmp_path: Path) -> None:
    """Where next to nothing is left, nothing is written: the database beside needs it."""
    program = [sys.executable, "-c", NEARLY_FULL, str(tmp_path)]
    ran = subprocess.run(
        ["unshare", "--mount", "--map-root-user", "sh", "-c", MOUNT, str(tmp_path), *program],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    if "unshare:" in ran.stderr or "mount:" in ran.stderr:
        pytest.skip(f"no file system can be mounted here: {ran.stderr.strip()}")

    assert ran.stderr == ""
    full, empty = ran.stdout.splitlines()
    assert full.startswith("only ")
    assert full.endswith(" KiB are left on its disk []")
    assert empty == "None 1"
