"""How the watchdog of a supervised program concludes, in a shell of this machine."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from sortie.transports.remote.scripts import texts

# The end of stderr is begun, and written while the watchdog hears its second line.
_LINE = b"""
heard=0
line() {
  heard=$((heard + 1))
  [ ! -e "$D/over" ] || { echo "$heard $(cat "$D/end2")" >"$TMPDIR/seen"; return 10; }
  [ "$heard" -lt 2 ] || echo 1000000000000000 >"$D/end2"
  return 7
}
conclude ''
"""


def test_nothing_is_over_before_the_ends_of_both_streams_are_written(tmp_path: Path) -> None:
    """Or who sends a stream would look for its end too early, and wait for ever."""
    place = tmp_path / "sortie-run.x"
    place.mkdir()
    (place / "end1").write_text("1000000000000000\n")
    (place / "end2").touch()
    os.mkfifo(place / "lease")
    given = b"id=x N=n R=30 L=30\n"
    script = given + b"\n".join([*texts("stat_of", "lives", "child_of", "supervised_lease"), _LINE])
    env = {"PATH": os.environ["PATH"], "TMPDIR": str(tmp_path)}

    subprocess.run(["/bin/sh"], input=script, env=env, timeout=60, check=True)

    assert (tmp_path / "seen").read_text() == "3 1000000000000000\n"
